-- oms_dataworks_to_changelog: the messages of source oms_dataworks, as rows of the changelog
-- format     oms_dataworks: OceanBase OMS to Kafka, serializer DATAWORKS_V2
-- reads      oms_dataworks_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`payload` struct<
          `op` string, `ddl` struct<`text` string>,
          `timestamp` struct<
            `eventTime` string, `systemTime` string, `checkpointTime` string>,
          `scn` string, `after` struct<`data` map<string,string>>, `before` struct<`data` map<string,string>>>,
        `schema` struct<
          `source` struct<
            `dbName` string, `schema` string, `table` string, `dbType` string, `dbVersion` string>,
          `pk` array<string>, `column` array<struct<`name`:string,`type`:string>>>,
        `extend` struct<`load_fm` string>, `version` string, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '4')) as document
  from `oms_dataworks_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `oms_dataworks_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone' end,
      case m.`payload`.`op` when 'INSERT' then 'row insert' when 'UPDATE' then 'row update' when 'DELETE' then 'row delete'
        when 'HEARTBEAT' then 'control heartbeat' when 'TRANSACTION_BEGIN' then 'control begin'
        when 'TRANSACTION_END' then 'control commit' when 'CREATE' then 'ddl create' when 'ALTER' then 'ddl alter'
        when 'ERASE' then 'ddl drop' when 'TRUNCATE' then 'ddl truncate' when 'RENAME' then 'ddl rename'
        when 'CINDEX' then 'ddl index' when 'DINDEX' then 'ddl index' when 'QUERY' then 'ddl by_statement'
        when 'XACOMMIT' then 'control commit' when 'XAROLLBACK' then 'control rollback' when 'GTID' then 'control other' end,
      case when m.`payload`.`op` is not null and m.`payload`.`ddl`.`text` is not null then 'ddl by_statement' end) as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict in ('row update', 'row delete') then m.`payload`.`before`.`data` end as found_before,
    case when verdict in ('row insert', 'row update') then m.`payload`.`after`.`data` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`payload`.`op` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict = 'row insert' and array_contains(misfits, 'payload.after.data') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'payload.after.data') or array_contains(misfits, 'payload.before.data'))
        then 'row-not-an-object'
      when verdict = 'row delete' and array_contains(misfits, 'payload.before.data') then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false)
        then if(nullif(m.`payload`.`ddl`.`text`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    key_columns(m.`schema`.`pk`, array()) as key_names,
    map_from_entries(transform(filter(m.`schema`.`column`, t -> t.`name` is not null), t -> struct(t.`name`, t.`type`))) as types,
    `oms_dataworks_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`payload`.`ddl`.`text`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, types, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, types, array()), null) as sent_after,
    `oms_dataworks_in_doubt`(raw, sent_before, sent_after, readers) as json_in_doubt,
    case when reason is null and verdict = 'row insert'
      then other_image(m.`payload`.`before`.`data`, coalesce(found_before, found_after), array())
      when reason is null and verdict = 'row delete'
        then other_image(m.`payload`.`after`.`data`, coalesce(found_before, found_after), array()) end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `oms_dataworks_texts`(sent_before, readers, json_in_doubt) as texts_before,
    `oms_dataworks_texts`(sent_after, readers, json_in_doubt) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent,
    concat(`oms_dataworks_ambiguous`(sent_before, readers, texts_before), `oms_dataworks_ambiguous`(sent_after, readers, texts_after)) as
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
  kind, 'oms_dataworks' as source, 'oms_dataworks' as format, op, cast(null as string) as tenant,
  nullif(m.`schema`.`source`.`dbName`, '') as db_name, nullif(m.`schema`.`source`.`schema`, '') as schema_name,
  nullif(m.`schema`.`source`.`table`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  if(m.`payload`.`timestamp`.`eventTime` = '0', null, instant_of_milliseconds(m.`payload`.`timestamp`.`eventTime`)) as event_time,
  if(m.`payload`.`timestamp`.`systemTime` = '0', null, instant_of_milliseconds(m.`payload`.`timestamp`.`systemTime`)) as produced_at,
  cast(null as string) as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(m.`payload`.`scn`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('scn', m.`payload`.`scn`, 'db_type', m.`schema`.`source`.`dbType`, 'checkpoint',
    m.`payload`.`timestamp`.`checkpointTime`,
    'source_system', m.`extend`.`load_fm`, 'db_version', m.`schema`.`source`.`dbVersion`, 'protocol_version', m.`version`,
    'other_image', other_image, 'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'ambiguous_times', names_joined(ambiguous_times),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`payload`.`ddl`.`text`, '') end as statement, reason,
  found_in_message(reason, 'payload.op', m.`payload`.`op`, m.`payload`.`ddl`.`text`) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
