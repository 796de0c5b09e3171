select
  `source`, `tenant`, `db_name`, `schema_name`, `table_name`,
  max(event_time) filter (where kind in ('row', 'ddl')) as last_event,
  max(coalesce(produced_at, event_time, origin.timestamp)) as last_message,
  max(loaded_at) as last_loaded,
  count_if(seq.row = 0) as messages,
  count_if(kind = 'row') as rows,
  count_if(kind = 'ddl') as ddls,
  count_if(kind = 'dead_letter') as dead_letters,
  count_if(kind = 'dead_letter' and false) as waived
from (
  select `kind`, 'canal' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`, `origin`,
    `loaded_at` from `canal_to_changelog`
  union all
  select `kind`, 'dataworks' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `dataworks_to_changelog`
  union all
  select `kind`, 'debezium_avro' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `debezium_avro_to_changelog`
  union all
  select `kind`, 'drs_avro' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `drs_avro_to_changelog`
  union all
  select `kind`, 'drs_json' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `drs_json_to_changelog`
  union all
  select `kind`, 'drs_json_c' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `drs_json_c_to_changelog`
  union all
  select `kind`, 'drs_json_oracle' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `drs_json_oracle_to_changelog`
  union all
  select `kind`, 'drs_mongodb' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `drs_mongodb_to_changelog`
  union all
  select `kind`, 'drs_sql' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `drs_sql_to_changelog`
  union all
  select `kind`, 'dts_avro' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `dts_avro_to_changelog`
  union all
  select `kind`, 'maxwell' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `maxwell_to_changelog`
  union all
  select `kind`, 'oceanbase_avro' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oceanbase_avro_to_changelog`
  union all
  select `kind`, 'oceanbase_canal' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oceanbase_canal_to_changelog`
  union all
  select `kind`, 'ogg_json' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `ogg_json_to_changelog`
  union all
  select `kind`, 'ogg_json_row' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `ogg_json_row_to_changelog`
  union all
  select `kind`, 'oms_canal' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oms_canal_to_changelog`
  union all
  select `kind`, 'oms_dataworks' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oms_dataworks_to_changelog`
  union all
  select `kind`, 'oms_default' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oms_default_to_changelog`
  union all
  select `kind`, 'oms_default_extend' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`,
    `seq`, `origin`, `loaded_at` from `oms_default_extend_to_changelog`
  union all
  select `kind`, 'oms_maxwell' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oms_maxwell_to_changelog`
  union all
  select `kind`, 'oms_shareplex' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oms_shareplex_to_changelog`
  union all
  select `kind`, 'qlik_replicate' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `qlik_replicate_to_changelog`
  union all
  select `kind`, 'ticdc_canal' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `ticdc_canal_to_changelog`
  union all
  select `kind`, 'ticdc_open' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `ticdc_open_to_changelog`
  union all
  select `kind`, 'tencent_dts' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `tencent_dts_to_changelog`
  union all
  select `kind`, 'debezium' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `debezium_to_changelog`
  union all
  select `kind`, 'debezium_flat' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `debezium_flat_to_changelog`
  union all
  select `kind`, 'debezium_cloudevents' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`,
    `seq`, `origin`, `loaded_at` from `debezium_cloudevents_to_changelog`
  union all
  select `kind`, 'debezium_mongodb' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `debezium_mongodb_to_changelog`
  union all
  select `kind`, 'debezium_postgresql' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`,
    `seq`, `origin`, `loaded_at` from `debezium_postgresql_to_changelog`
  union all
  select `kind`, 'oms_debezium' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oms_debezium_to_changelog`
  union all
  select `kind`, 'oms_debezium_smt' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oms_debezium_smt_to_changelog`
  union all
  select `kind`, 'wal2json' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `wal2json_to_changelog`
  union all
  select `kind`, 'wal2json_v1' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `wal2json_v1_to_changelog`
  union all
  select `kind`, 'aws_dms' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `aws_dms_to_changelog`
  union all
  select `kind`, 'rows' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`, `origin`,
    `loaded_at` from `rows_to_changelog`
  union all
  select `kind`, 'oms_before_3_3' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `oms_before_3_3_to_changelog`
  union all
  select `kind`, 'declared' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`,
    `origin`, `loaded_at` from `declared_to_changelog`
  union all
  select `kind`, 'masked' as `source`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `event_time`, `produced_at`, `seq`, `origin`,
    `loaded_at` from `masked_to_changelog`
)
where kind <> 'control'
group by `source`, `tenant`, `db_name`, `schema_name`, `table_name`
