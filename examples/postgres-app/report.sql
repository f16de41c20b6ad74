-- Standard input of the action `report`: scans, a join, a sort that spills into files, a copy.
SET work_mem = '256kB';
SELECT 'accounts ' || count(*) FROM pgbench_accounts;
SELECT count(*) > 0 FROM pgbench_accounts a JOIN pgbench_tellers t ON a.bid = t.bid WHERE t.tid < 3;
SELECT 'sorted' FROM (SELECT aid FROM pgbench_accounts ORDER BY filler, aid DESC OFFSET 99999) s;
COPY (SELECT * FROM pgbench_accounts WHERE aid <= 20000) TO '/tmp/accounts.copy';
BEGIN;
CREATE TEMP TABLE copied (LIKE pgbench_accounts);
COPY copied FROM '/tmp/accounts.copy';
ROLLBACK;
