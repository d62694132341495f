-- needs: 25
--
-- Where offsets were set back, what was missing comes later: without this, a gap would stay
-- for ever. Records of it before read_to came later; 0: none did. The offsets of a topic
-- that was made again are those of other records; topic_id is zero where it is not known.
ALTER TABLE ${database}.gaps ${on_cluster}
    ADD COLUMN IF NOT EXISTS topic_id UUID,
    ADD COLUMN IF NOT EXISTS read_to UInt64;
