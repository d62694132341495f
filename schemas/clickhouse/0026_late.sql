-- needs: 25
--
-- After a collector's clock was wrong, each insert was a row until that time. One
-- row is a period now: what arrives from one time up to the other, and for a receiver
-- what of it was sent. Rows from before are of one time.
ALTER TABLE ${database}.export_late ${on_cluster} ADD COLUMN IF NOT EXISTS upto DateTime64(3, 'UTC') DEFAULT arrived;
