select *, array_distinct(transform(
  flatten(transform(
    split(regexp_replace(array_join(transform(
    filter(
      regexp_extract_all(statement, concat(
        '(?s)\'(?:[^\'\\\\]|\\\\.|\'\')*+\'?+|"(?:[^"]|"")*+"|`(?:[^`]|``)*+`|\\[[^\\]]*+\\]|',
        '/\\*M?![0-9]*+|/\\*.*?\\*/|\\*/|--[^\\n]*+|#[^\\n]*+|[\\p{L}\\p{N}_$@][\\p{L}\\p{N}_$@#]*+|\\S'), 0),
      w -> not w rlike '^(?:--|#|/\\*|\\*/|\')'),
    w -> if(w rlike '^["`\\[].', concat('`', replace(replace(replace(substr(w, 2, length(w) - 2), ' ', '\u00a0'), '``', '`'), '""', '"')),
      w)), ' '), '(?i)^set statement .*? for ', ''), '(?:^| );(?: |$)'),
    one -> if(one rlike '(?i)^(?:truncate|rename|drop (?:foreign )?tables?) ',
      regexp_extract_all(one, concat(
        '(?i)(?:^(?:truncate(?: table)?|drop (?:foreign )?tables?|rename(?: tables?)?)(?: if exists)?(?: only)?| ,| to)',
        ' ([`\\p{L}\\p{N}_$@]\\S*+(?: \\. [`\\p{L}\\p{N}_$@]\\S*+)*+)'), 1),
      regexp_extract_all(one, concat(
        '(?i)(?:^alter (?:(?:online|offline|ignore|foreign) )*+table(?: if exists)?(?: only)?',
        '|^create (?:or replace )?(?:(?:unlogged|foreign|external) )*+table(?: if not exists)?',
        '|^(?:create|drop) [^(]*?(?:index|trigger)(?: [^(]*?)? on(?: only)?| like| references| with table',
        '| rename(?: to| as| =)?(?! (?:to|as|=|column|index|key|constraint|partition)\\b))',
        ' ([`\\p{L}\\p{N}_$@]\\S*+(?: \\. [`\\p{L}\\p{N}_$@]\\S*+)*+)(?! to )'), 1)))),
  named -> replace(replace(regexp_replace(named, '(?:^|(?<= \\. ))`', ''), ' . ', '.'), '\u00a0', ' '))) as tables from (
select * from (
  select `kind`, 'canal' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `canal_to_changelog`
  union all
  select `kind`, 'dataworks' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `dataworks_to_changelog`
  union all
  select `kind`, 'debezium_avro' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `debezium_avro_to_changelog`
  union all
  select `kind`, 'drs_avro' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `drs_avro_to_changelog`
  union all
  select `kind`, 'drs_json' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `drs_json_to_changelog`
  union all
  select `kind`, 'drs_json_c' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `drs_json_c_to_changelog`
  union all
  select `kind`, 'drs_json_oracle' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `drs_json_oracle_to_changelog`
  union all
  select `kind`, 'drs_mongodb' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `drs_mongodb_to_changelog`
  union all
  select `kind`, 'drs_sql' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `drs_sql_to_changelog`
  union all
  select `kind`, 'dts_avro' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `dts_avro_to_changelog`
  union all
  select `kind`, 'maxwell' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `maxwell_to_changelog`
  union all
  select `kind`, 'oceanbase_avro' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `oceanbase_avro_to_changelog`
  union all
  select `kind`, 'oceanbase_canal' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `oceanbase_canal_to_changelog`
  union all
  select `kind`, 'ogg_json' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `ogg_json_to_changelog`
  union all
  select `kind`, 'ogg_json_row' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `ogg_json_row_to_changelog`
  union all
  select `kind`, 'oms_canal' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `oms_canal_to_changelog`
  union all
  select `kind`, 'oms_dataworks' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `oms_dataworks_to_changelog`
  union all
  select `kind`, 'oms_default' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `oms_default_to_changelog`
  union all
  select `kind`, 'oms_default_extend' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `oms_default_extend_to_changelog`
  union all
  select `kind`, 'oms_maxwell' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `oms_maxwell_to_changelog`
  union all
  select `kind`, 'oms_shareplex' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `oms_shareplex_to_changelog`
  union all
  select `kind`, 'qlik_replicate' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `qlik_replicate_to_changelog`
  union all
  select `kind`, 'ticdc_canal' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `ticdc_canal_to_changelog`
  union all
  select `kind`, 'ticdc_open' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `ticdc_open_to_changelog`
  union all
  select `kind`, 'tencent_dts' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `tencent_dts_to_changelog`
  union all
  select `kind`, 'debezium' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `debezium_to_changelog`
  union all
  select `kind`, 'debezium_flat' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `debezium_flat_to_changelog`
  union all
  select `kind`, 'debezium_cloudevents' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `debezium_cloudevents_to_changelog`
  union all
  select `kind`, 'debezium_mongodb' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `debezium_mongodb_to_changelog`
  union all
  select `kind`, 'debezium_postgresql' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `debezium_postgresql_to_changelog`
  union all
  select `kind`, 'oms_debezium' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `oms_debezium_to_changelog`
  union all
  select `kind`, 'oms_debezium_smt' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `oms_debezium_smt_to_changelog`
  union all
  select `kind`, 'wal2json' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `wal2json_to_changelog`
  union all
  select `kind`, 'wal2json_v1' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `wal2json_v1_to_changelog`
  union all
  select `kind`, 'aws_dms' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `aws_dms_to_changelog`
  union all
  select `kind`, 'rows' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `rows_to_changelog`
  union all
  select `kind`, 'oms_before_3_3' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
    `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
    `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
    `oms_before_3_3_to_changelog`
  union all
  select `kind`, 'declared' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `declared_to_changelog`
  union all
  select `kind`, 'masked' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
    `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`,
    `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from `masked_to_changelog`
)
where kind = 'ddl'
)
