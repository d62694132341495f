-- needs: 12
--
-- What an insert, and a late record, cost. A new part is one file for all columns:
-- as a file for each, one insert synced more than 400 of them. And nothing merges
-- a partition whole because it is old: one late record rewrote a month. What comes
-- late stays in small parts, which are merged with their like, and FINAL merges
-- only the ranges that parts share.
ALTER TABLE ${database}.events ${on_cluster} MODIFY SETTING min_level_for_wide_part = 1;

ALTER TABLE ${database}.session_states ${on_cluster} MODIFY SETTING min_level_for_wide_part = 1;

ALTER TABLE ${database}.events ${on_cluster} RESET SETTING min_age_to_force_merge_seconds, min_age_to_force_merge_on_partition_only;

ALTER TABLE ${database}.operation_states ${on_cluster} RESET SETTING min_age_to_force_merge_seconds, min_age_to_force_merge_on_partition_only;

ALTER TABLE ${database}.decision_states ${on_cluster} RESET SETTING min_age_to_force_merge_seconds, min_age_to_force_merge_on_partition_only;

ALTER TABLE ${database}.risk_states ${on_cluster} RESET SETTING min_age_to_force_merge_seconds, min_age_to_force_merge_on_partition_only;
