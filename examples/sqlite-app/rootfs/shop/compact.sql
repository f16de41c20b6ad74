-- Writes the whole database again, and checks it.
.read /shop/catalogue.sql
DELETE FROM orders WHERE id > 2000;
VACUUM;
PRAGMA integrity_check;
