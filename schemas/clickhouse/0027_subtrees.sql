-- needs: 25
--
-- The proof of a record needs the leaves of all records of its session up to the checkpoint
-- after it. Of each 4096 that are proved, from the first on, this is one hash, so a proof of
-- a session of millions reads few of them. No one need trust it: the checkpoint's signature
-- says whether it is right.
ALTER TABLE ${database}.verifications ${on_cluster} ADD COLUMN IF NOT EXISTS subtrees Array(FixedString(32)) CODEC(NONE);
