-- debezium_avro_to_changelog: the messages of source debezium_avro, as rows of the changelog
-- format     debezium_avro: Debezium change events as Avro, with the numbers of their schemas
-- reads      debezium_avro_messages: raw binary, own_schema string, damage string, origin struct, arrival array
-- functions  Spark's own, and avro_debezium_avro_c735e407 of runner/functions
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names, of the record in the bytes.  [message.schema, records]
decoded as (
  select *, avro_debezium_avro_c735e407(raw, own_schema) as record
  from `debezium_avro_messages`
),

-- The one record of each message, or why there is not one.
parsed as (
  select * except (record, damage), record.fields as m, record.images as sent_images,
    case
      when damage is not null then 'bad-avro'
      when octet_length(raw) = 0 then 'empty'
      else record.reason
    end as parse_error,
    coalesce(damage, record.detail) as read_detail
  from decoded
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`op` = 'c' then 'row insert'
      when m.`op` = 'r' then 'row snapshot'
      when m.`op` = 'u' and m.`source`.`connector` = 'postgresql' then 'row update'
      when m.`op` = 'u' then 'row update 2'
      when m.`op` = 'd' and m.`source`.`connector` = 'postgresql' then 'row delete'
      when m.`op` = 'd' then 'row delete 2'
      when m.`op` = 't' then 'ddl truncate'
      when m.`op` = 'm' then 'control other'
      when m.`op` is null and m.`status` = 'BEGIN' then 'control begin'
      when m.`op` is null and m.`status` = 'END' then 'control commit'
      when m.`op` is null and m.`ddl` is not null then 'ddl by_statement'
      when m.`op` is null and m.`tableChanges` is not null then 'ddl other'
      when m.`op` is null and m.`ts_ms` is not null and m.`source`.`connector` is null then 'control heartbeat'
      when m.`op` is null and m.`aggregate_type` is not null then 'dead_letter notification' end as verdict
  from parsed
),

-- The images, column -> value.
named_images as (
  select *, sent_images.`after`.texts as `image_after`, sent_images.`before`.texts as `image_before`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    array('__debezium_unavailable_value', 'X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==', '["__debezium_unavailable_value"]',
      '5f5f646562657a69756d5f756e617661696c61626c655f76616c7565', '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
      '[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]',
      '["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]', '["5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"]',
      '["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]') as placeholders,
    case when verdict in ('row update', 'row update 2', 'row delete', 'row delete 2') then `image_before` end as found_before,
    case when verdict in ('row insert', 'row snapshot', 'row update', 'row update 2') then `image_after` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *, coalesce(read_detail) as error_detail,
    array_compact(flatten(array(
      coalesce(sent_images.`after`.as_sent, array()),
      coalesce(sent_images.`before`.as_sent, array())))) as unfit_columns,
    array_compact(flatten(array(
      coalesce(sent_images.`after`.settled, array()),
      coalesce(sent_images.`before`.settled, array())))) as settled_columns,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`op` is null, 'no-op', 'unknown-op')
      when verdict like 'dead\\_letter %' then substring_index(substring_index(verdict, ' ', 2), ' ', -1)
      when verdict not like 'row %' then null
      when not coalesce(size(if(verdict in ('row delete', 'row delete 2'), found_before, found_after)) > 0, false)
        then if(nullif(m.`ddl`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    cast(null as array<string>) as key_names, coalesce(m.`after`, m.`before`) as types, `debezium_avro_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.  [not_sent]
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, error_detail, own_schema, unfit_columns,
    if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`ddl`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(size(settled_columns) = 0, readers, map_filter(readers, (c, r) -> not array_contains(settled_columns, c))) as readers,
    if(reason is null, if(verdict in ('row update', 'row delete'), key_part(found_before, types, array(), placeholders, key_names),
      map_filter(found_before, (c, v) -> array_contains(placeholders, v) is not true)), null) as sent_before,
    if(reason is null, map_filter(found_after, (c, v) -> array_contains(placeholders, v) is not true), null) as sent_after,
    if(reason is null, map_concat(coalesce(found_before, map()), coalesce(found_after, map()), coalesce(types, map())), null) as
      named_columns,
    case when reason is null and verdict in ('row insert', 'row snapshot')
      then other_image(`image_before`, coalesce(found_before, found_after), array())
      when reason is null and verdict in ('row delete', 'row delete 2')
        then other_image(`image_after`, coalesce(found_before, found_after), array()) end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *, `debezium_avro_texts`(sent_before, readers) as texts_before, `debezium_avro_texts`(sent_after, readers) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)),
      if(kind = 'row', unfit_columns, array())) as columns_as_sent,
    concat(`debezium_avro_ambiguous`(sent_before, readers, texts_before), `debezium_avro_ambiguous`(sent_after, readers, texts_after)) as
      ambiguous_times
  from texts
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    case when kind = 'row' then columns_of(after, before, key_names) end as key,
    if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null) as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, 'debezium_avro' as source, 'debezium_avro' as format, op, cast(null as string) as tenant,
  case when verdict in ('ddl by_statement', 'ddl other') then nullif(m.`databaseName`, '') else nullif(m.`source`.`db`, '') end as db_name,
  case when verdict in ('ddl by_statement', 'ddl other') then nullif(m.`schemaName`, '') else nullif(m.`source`.`schema`, '')
    end as schema_name,
  nullif(m.`source`.`table`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict in ('row update', 'row delete')
    and not coalesce(size(array_except(map_keys(before), key_names)) > 0, false) then 'key'
    else completeness(before, after, named_columns, key_names) end as before_image,
  if(kind = 'row', completeness(after, before, named_columns, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, named_columns) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  case when verdict in ('control begin', 'control commit', 'control heartbeat')
    then if(m.`ts_ms` = '0', null, instant_of_milliseconds(m.`ts_ms`))
    else coalesce(if(m.`source`.`ts_us` = '0', null, instant_of_microseconds(m.`source`.`ts_us`)),
    if(m.`source`.`ts_ms` = '0', null, instant_of_milliseconds(m.`source`.`ts_ms`))) end as event_time,
  coalesce(if(m.`ts_us` = '0', null, instant_of_microseconds(m.`ts_us`)), if(m.`ts_ms` = '0', null, instant_of_milliseconds(m.`ts_ms`))) as
    produced_at,
  case when verdict in ('control begin', 'control commit') then nullif(m.`id`, '')
    else coalesce(nullif(m.`transaction`.`id`, ''), nullif(m.`source`.`gtid`, ''), nullif(m.`source`.`txId`, '')) end as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(case when lower(m.`source`.`connector`) in ('mysql', 'mariadb')
      then get(slice(regexp_extract_all(m.`source`.`file`, '[0-9]+', 0), -1, 1), 0)
      when lower(m.`source`.`connector`) = 'postgresql' then get(regexp_extract_all(m.`source`.`sequence`, '[0-9]+', 0), 0)
      when lower(m.`source`.`connector`) = 'oracle' then coalesce(m.`source`.`commit_scn`, m.`source`.`scn`)
      when lower(m.`source`.`connector`) in ('sqlserver', 'db2') then number_of_lsn(m.`source`.`commit_lsn`) else cast(null as string)
        end, case when lower(m.`source`.`connector`) in ('mysql', 'mariadb') then m.`source`.`pos`
      when lower(m.`source`.`connector`) = 'postgresql' then m.`source`.`lsn`
      when lower(m.`source`.`connector`) = 'oracle' then m.`source`.`scn`
      when lower(m.`source`.`connector`) in ('sqlserver', 'db2') then number_of_lsn(m.`source`.`change_lsn`) else cast(null as string)
        end, case when lower(m.`source`.`connector`) in ('mysql', 'mariadb') then m.`source`.`row`
      when lower(m.`source`.`connector`) = 'sqlserver' then m.`source`.`event_serial_no` else cast(null as string) end)), 'arrival',
        arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('connector', m.`source`.`connector`, 'server', m.`source`.`name`, 'protocol_version', m.`source`.`version`,
    'gtid', m.`source`.`gtid`, 'scn', m.`source`.`scn`, 'thread', m.`source`.`thread`,
    'log', case when lower(m.`source`.`connector`) in ('mysql', 'mariadb') then nullif(nullif(m.`source`.`server_id`, '0'), '')
      else cast(null as string) end,
    'log_position', coalesce(nullif(m.`source`.`file`, ''), nullif(m.`source`.`lsn`, ''), nullif(m.`source`.`change_lsn`, '')),
    'transaction_position', m.`transaction`.`total_order`, 'prefix', m.`message`.`prefix`, 'content', m.`message`.`content`,
    'other_image', other_image, 'as_sent', names_joined(columns_as_sent), 'ambiguous_times', names_joined(ambiguous_times),
    'raw_encoding', if(kind = 'dead_letter', 'base64', null), 'own_schema', if(raw is null, null, own_schema))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`ddl`, '') end as statement, reason,
  coalesce(if(kind = 'dead_letter', error_detail, null), case reason
    when 'notification' then concat('aggregate_type: ', coalesce(concat('"', m.`aggregate_type`, '"'), 'missing'))
    else found_in_message(reason, 'op', m.`op`, m.`ddl`) end) as detail,
  base64(raw) as raw
from keyed
