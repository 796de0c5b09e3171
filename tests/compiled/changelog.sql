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
where kind = 'row'
  and pair_id is null
union all
select `kind`, `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`, `before`, `after`,
  `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`, `meta`, `origin`, `statement`,
  `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from (
  select
    own.*
      except (before, before_image, after_image, old_key, changed, batch),
    if(other is null, own.before, other.before) as before,
    if(other is null, own.before_image, case
  when other.before is null then 'none'
  when coalesce(map_keys(other.before) = map_keys(own.types), own.types is null)
    and coalesce(map_keys(other.before) = map_keys(own.after), own.after is null) then 'full'
  when not
    (coalesce(size(array_except(map_keys(own.after), map_keys(other.before))) > 0, false)
    or coalesce(size(array_except(map_keys(own.types), map_keys(other.before))) > 0, false)) then 'full'
  when size(other.before) > 0 and size(array_except(map_keys(other.before), map_keys(own.key))) = 0 then 'key'
  else 'partial' end) as before_image,
    if(other is null, own.after_image, case
  when own.after is null then 'none'
  when coalesce(map_keys(own.after) = map_keys(own.types), own.types is null)
    and coalesce(map_keys(own.after) = map_keys(other.before), other.before is null) then 'full'
  when not
    (coalesce(size(array_except(map_keys(other.before), map_keys(own.after))) > 0, false)
    or coalesce(size(array_except(map_keys(own.types), map_keys(own.after))) > 0, false)) then 'full'
  when size(own.after) > 0 and size(array_except(map_keys(own.after), map_keys(own.key))) = 0 then 'key'
  else 'partial' end) as after_image,
    if(other is null, own.old_key, if(not map_values(other.key) <=> map_values(own.key), other.key, null)) as old_key,
    if(other is null, own.changed, case
  when map_keys(other.before) = map_keys(own.after)
    then sort_array(filter(map_keys(own.after), (c, i) -> not get(map_values(other.before), i) <=> get(map_values(own.after), i)))
  when
    (coalesce(size(array_except(map_keys(own.after), map_keys(other.before))) > 0, false)
    or coalesce(size(array_except(map_keys(own.types), map_keys(other.before))) > 0, false)) =
    (coalesce(size(array_except(map_keys(other.before), map_keys(own.after))) > 0, false)
    or coalesce(size(array_except(map_keys(own.types), map_keys(own.after))) > 0, false))
    then
      sort_array(array_intersect(array_intersect(map_keys(other.before), map_keys(own.after)),
      map_keys(map_filter(map_zip_with(other.before, own.after, (c, b, a) -> not b <=> a), (c, differs) -> differs)))) end) as changed,
    if(other is null, own.batch, greatest(own.batch, other.batch)) as batch
  from (
    select
      coalesce(after_half, before_half) as own,
      if(after_half is null, null, before_half) as other
    from (
      select
        min_by(half, half.seq) filter (where half.after_image = 'none') as before_half,
        min_by(half, half.seq) filter (where half.after_image <> 'none') as after_half
      from (
        select struct(`kind`, `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`, `key_text`,
          `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`, `pair_id`,
          `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on`) as half from (
          select `kind`, 'dataworks' as `source`, `format`, `op`, `tenant`, `db_name`, `schema_name`, `table_name`, `key`, `old_key`,
            `key_text`, `before`, `after`, `before_image`, `after_image`, `changed`, `types`, `event_time`, `produced_at`, `tx_id`, `seq`,
            `pair_id`, `meta`, `origin`, `statement`, `reason`, `detail`, `raw`, `run_id`, `batch`, `loaded_at`, `landed_on` from
            `dataworks_to_changelog`
        )
        where kind = 'row' and pair_id is not null
      )
      group by half.source, half.tenant, half.db_name, half.schema_name, half.table_name, half.pair_id, half.seq.row
    )
  )
)
