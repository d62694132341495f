-- needs: 23
--
-- A merge of events writes one column after the other, also of few records. With
-- all of them open, one that writes 100 MB needed more memory than ten inserts, and
-- a reader beside it got none.
ALTER TABLE ${database}.events ${on_cluster} MODIFY SETTING vertical_merge_algorithm_min_rows_to_activate = 1;

-- What counts a session's records has sets in it, of which a merge of thousands of
-- sessions kept as many rows in memory as if they were numbers.
ALTER TABLE ${database}.session_states ${on_cluster} MODIFY SETTING merge_max_block_size = 1024, min_columns_to_activate_adaptive_write_buffer = 1;
