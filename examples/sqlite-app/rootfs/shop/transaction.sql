BEGIN;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
INSERT INTO orders (customer, item, pence, state)
  SELECT i % 100, 'item ' || (i % 50), i * 37 % 9973, 'new' FROM n;
COMMIT;
