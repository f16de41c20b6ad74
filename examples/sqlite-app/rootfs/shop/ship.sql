-- Changes a quarter of the rows, and their entries in an index.
.read /shop/catalogue.sql
BEGIN;
UPDATE orders
  SET state = CASE state WHEN 'old' THEN 'shipped' ELSE 'old' END
  WHERE customer < 25 AND id <= 2000;
SELECT 'shipped ' || changes();
COMMIT;
