-- Eight transactions of 50 orders each; every commit is synchronised.
.read /shop/catalogue.sql
DELETE FROM orders WHERE state = 'new';
.read /shop/transaction.sql
.read /shop/transaction.sql
.read /shop/transaction.sql
.read /shop/transaction.sql
.read /shop/transaction.sql
.read /shop/transaction.sql
.read /shop/transaction.sql
.read /shop/transaction.sql
SELECT 'ordered ' || count(*) FROM orders WHERE state = 'new';
