-- What every action begins with: the tables, and 2000 old orders of 100 customers.
CREATE TABLE IF NOT EXISTS orders (
  id INTEGER PRIMARY KEY,
  customer INTEGER NOT NULL,
  item TEXT NOT NULL,
  pence INTEGER NOT NULL,
  state TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_customer ON orders (customer, state);
CREATE INDEX IF NOT EXISTS by_item ON orders (item);
BEGIN;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT OR IGNORE INTO orders
  SELECT i, i % 100, 'item ' || (i % 50), i * 37 % 9973, 'old' FROM n;
COMMIT;
