-- tencent_dts_to_changelog: the messages of source tencent_dts, as rows of the changelog
-- format     tencent_dts: Tencent DTS data subscription, JSON, from MySQL and TDSQL-C
-- reads      tencent_dts_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`messageType` string, `schemaName` string, `tableName` string, `gtid` string, `sql` string, `timestamp` string,
        `readerTimestamp` string, `id` string, `position` string, `safePosition` string, `serverId` string, `threadId` string,
        `sourceType` string, `sourceVersion` string, `version` string, `heartbeatTimestamp` string, `newColumns` array<string>,
        `oldColumns` array<string>, `pkNames` array<string>,
        `columns` array<struct<
          `name`:string,`isKey`:string,`originalType`:string>>,
        `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '3')) as document
  from `tencent_dts_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `tencent_dts_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone' end,
      case m.`messageType` when 'INSERT' then 'row insert' when 'UPDATE' then 'row update' when 'DELETE' then 'row delete'
        when 'INIT_INSERT' then 'row snapshot' when 'INIT_DDL' then 'ddl by_statement' when 'DDL' then 'ddl by_statement'
        when 'BEGIN' then 'control begin' when 'COMMIT' then 'control commit' when 'ROLLBACK' then 'control rollback'
        when 'HEARTBEAT' then 'control heartbeat' when 'CHECKPOINT' then 'control watermark' end) as verdict
  from parsed
),

-- The images, column -> value.  [names, name, value, prefix]
named_images as (
  select *,
    if(size(m.`columns`.`name`) = size(m.`newColumns`)
      and not exists(m.`columns`.`name`, n -> n is null), map_from_arrays(m.`columns`.`name`, m.`newColumns`), null) as `image_newColumns`,
    if(size(m.`columns`.`name`) = size(m.`oldColumns`)
      and not exists(m.`columns`.`name`, n -> n is null), map_from_arrays(m.`columns`.`name`, m.`oldColumns`), null) as `image_oldColumns`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict in ('row update', 'row delete') then `image_oldColumns` end as found_before,
    case when verdict in ('row insert', 'row update', 'row snapshot') then `image_newColumns` end as found_after
  from named_images
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`messageType` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict like 'row %' and m.`newColumns` is not null and `image_newColumns` is null then 'schema-mismatch'
      when verdict like 'row %' and m.`oldColumns` is not null and `image_oldColumns` is null then 'schema-mismatch'
      when verdict in ('row insert', 'row snapshot') and array_contains(misfits, 'newColumns') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'newColumns') or array_contains(misfits, 'oldColumns'))
        then 'row-not-an-object'
      when verdict = 'row delete' and array_contains(misfits, 'oldColumns') then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false)
        then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    coalesce(nullif(key_columns(m.`pkNames`, array()), cast(array() as array<string>)),
      array_except(filter(m.`columns`, c -> c.`isKey` = 'true' and c.`name` is not null).`name`, array())) as key_names,
    map_from_entries(transform(filter(m.`columns`, t -> t.`name` is not null), t -> struct(t.`name`, t.`originalType`))) as types,
    `tencent_dts_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`sql`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, types, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, types, array()), null) as sent_after,
    case when reason is null and verdict in ('row insert', 'row snapshot')
      then other_image(`image_oldColumns`, coalesce(found_before, found_after), array())
      when reason is null and verdict = 'row delete' then other_image(`image_newColumns`, coalesce(found_before, found_after), array())
        end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *, `tencent_dts_texts`(sent_before, readers) as texts_before, `tencent_dts_texts`(sent_after, readers) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent
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
  kind, 'tencent_dts' as source, 'tencent_dts' as format, op, cast(null as string) as tenant, nullif(m.`schemaName`, '') as db_name,
  cast(null as string) as schema_name, nullif(m.`tableName`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  case when verdict = 'control heartbeat' then if(m.`heartbeatTimestamp` = '0', null, instant_of_seconds(m.`heartbeatTimestamp`))
    else if(m.`timestamp` = '0', null, instant_of_seconds(m.`timestamp`)) end as event_time,
  if(m.`readerTimestamp` = '0', null, instant_of_milliseconds(m.`readerTimestamp`)) as produced_at, nullif(m.`gtid`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(m.`id`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('message_id', m.`id`, 'gtid', m.`gtid`, 'log_position', m.`position`, 'checkpoint', m.`safePosition`, 'server',
    m.`serverId`,
    'thread', m.`threadId`, 'db_type', m.`sourceType`, 'db_version', m.`sourceVersion`, 'protocol_version', m.`version`,
    'other_image', other_image, 'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`sql`, '') end as statement, reason,
  found_in_message(reason, 'messageType', m.`messageType`, m.`sql`) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
