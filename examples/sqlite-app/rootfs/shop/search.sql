-- By both indexes, by none, and sorted.
.read /shop/catalogue.sql
SELECT sum(pence) FROM orders WHERE customer = 7 GROUP BY state;
SELECT item, max(pence) FROM orders GROUP BY item ORDER BY 2 DESC LIMIT 3;
SELECT count(*) FROM orders AS a JOIN orders AS b ON a.item = b.item WHERE a.customer = 7;
SELECT count(*) FROM orders WHERE item LIKE '%m 4%';
SELECT 'found '
  || (SELECT count(*) FROM orders WHERE customer = 7 AND id <= 2000) || ' '
  || (SELECT count(*) FROM orders WHERE item = 'item 3' AND id <= 2000) || ' '
  || (SELECT count(*) FROM orders WHERE id <= 2000);
