-- One life of a sequencer, in a database of its own.
CREATE SCHEMA tique;
CREATE EXTENSION tique WITH SCHEMA tique;
SELECT tique.ready();
SELECT tique.sts();
SELECT tique.recover(10);
SELECT tique.recover(10);
SELECT tique.join_client(3600000) AS client \gset
SELECT sts FROM tique.begin_transaction(:client);
-- A commit timestamp is finished with its transaction.
BEGIN;
SELECT tique.certify(:client, 10, 'one key, 16 byte');
SELECT tique.sts();
COMMIT;
SELECT tique.sts(), tique.lambda();
SELECT tique.certify(:client, 10, 'one key, 16 byte');
BEGIN;
SELECT tique.certify(:client, 11, 'one key, 16 byte');
ROLLBACK;
SELECT tique.certify(:client, 11, 'one key, 16 byte');
SELECT tique.wait(13, 0), tique.wait(14, 0);
-- A barrier whose client goes is in doubt.
SELECT tique.next_cts(:client);
SELECT tique.leave_client(:client);
SELECT tique.sts(), tique.doubtful();
SELECT tique.fence(14);
SELECT tique.join_client(3600000) AS client \gset
SELECT * FROM tique.sts_for(:client);
DROP EXTENSION tique;
DROP SCHEMA tique;
