-- oms_default_extend_to_changelog: the messages of source oms_default_extend, as rows of the changelog
-- format     oms_default_extend: OceanBase OMS to Kafka, serializer DefaultExtendColumnType (DEFAULT_WITH_SCHEMA)
-- reads      oms_default_extend_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`recordType` string,
        `allMetaData` struct<
          `dbType` string, `db` string, `table_name` string, `transId` string, `uniqueId` string, `timestamp` string,
          `storeDataSequence` string, `clusterId` string, `checkpoint` string, `source_identity` string, `ddlType` string,
          `record_primary_value` string, `record_primary_key` string>,
        `postStruct` map<string,string>, `prevStruct` map<string,string>, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '2')) as document
  from `oms_default_extend_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `oms_default_extend_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`recordType` = 'INSERT' and m.`allMetaData`.`timestamp` is null then 'row snapshot'
      when m.`recordType` = 'INSERT' then 'row insert'
      when m.`recordType` = 'UPDATE' then 'row update'
      when m.`recordType` = 'DELETE' then 'row delete'
      when m.`recordType` = 'ROW' then 'row snapshot'
      when m.`recordType` = 'HEARTBEAT' then 'control heartbeat'
      when m.`recordType` = 'DDL' then 'ddl by_statement' end as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select *, array('__light_type') as hidden,
    case when verdict in ('row update', 'row delete') then m.`prevStruct` end as found_before,
    case when verdict in ('row snapshot', 'row insert', 'row update') then m.`postStruct` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`recordType` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict in ('row snapshot', 'row insert') and array_contains(misfits, 'postStruct') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'postStruct') or array_contains(misfits, 'prevStruct'))
        then 'row-not-an-object'
      when verdict = 'row delete' and array_contains(misfits, 'prevStruct') then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0
        and (size(if(verdict = 'row delete', found_before, found_after)) > 1
        or size(table_columns(if(verdict = 'row delete', found_before, found_after), null, hidden)) > 0), false)
        then
        if(coalesce(nullif(m.`postStruct`.`ddl`, ''), nullif(m.`prevStruct`.`ddl`, '')) is not null, 'statement-without-rows',
        'no-row-image') end as reason,
    split(nullif(m.`allMetaData`.`record_primary_key`, ''), '\\Q\\E', -1) as key_names,
    map_filter(map_concat(coalesce(transform_values(from_json(m.`postStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t)
      -> t.`schemaType`),
      transform_values(from_json(m.`prevStruct`.`__light_type`, 'map<string,struct<`schemaType`:string>>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')), (c, t)
      -> t.`schemaType`))), (c, t) -> array_contains(hidden, c) is not true) as types,
    `oms_default_extend_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.  [drop]
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when verdict = 'ddl by_statement' then case when lower(m.`allMetaData`.`ddlType`) in ('create_index', 'drop_index') then 'index'
      when startswith(lower(m.`allMetaData`.`ddlType`), 'create') then 'create'
      when startswith(lower(m.`allMetaData`.`ddlType`), 'alter') then 'alter'
      when startswith(lower(m.`allMetaData`.`ddlType`), 'drop') then 'drop'
      when startswith(lower(m.`allMetaData`.`ddlType`), 'truncate') then 'truncate'
      when startswith(lower(m.`allMetaData`.`ddlType`), 'rename') then 'rename'
        else op_of_statement(coalesce(nullif(m.`postStruct`.`ddl`, ''), nullif(m.`prevStruct`.`ddl`, ''))) end
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, types, hidden), null) as sent_before,
    if(reason is null, table_columns(found_after, types, hidden), null) as sent_after,
    `oms_default_extend_in_doubt`(raw, sent_before, sent_after, readers) as json_in_doubt,
    case when reason is null and verdict in ('row snapshot', 'row insert')
      then other_image(m.`prevStruct`, coalesce(found_before, found_after), hidden)
      when reason is null and verdict = 'row delete' then other_image(m.`postStruct`, coalesce(found_before, found_after), hidden)
        end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `oms_default_extend_texts`(sent_before, readers, json_in_doubt) as texts_before,
    `oms_default_extend_texts`(sent_after, readers, json_in_doubt) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent,
    concat(`oms_default_extend_ambiguous`(sent_before, readers, texts_before),
      `oms_default_extend_ambiguous`(sent_after, readers, texts_after)) as ambiguous_times
  from texts
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    case when kind = 'row' then
      coalesce(columns_of(after, before, key_names),
      key_with_values(after, before, key_names, split(m.`allMetaData`.`record_primary_value`, '\\Q\\E', -1))) end as key,
    if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null) as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, 'oms_default_extend' as source, 'oms_default_extend' as format, op,
  case when startswith(lower(m.`allMetaData`.`dbType`), 'ob') or startswith(lower(m.`allMetaData`.`dbType`), 'oceanbase')
    then nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(.*?)\\..*$', 1), '') else cast(null as string) end as tenant,
  case when lower(m.`allMetaData`.`dbType`) in ('ob_oracle', 'ob_in_oracle_mode', 'oracle')
    or startswith(lower(m.`allMetaData`.`dbType`), 'db2') then cast(null as string)
      when startswith(lower(m.`allMetaData`.`dbType`), 'ob') or startswith(lower(m.`allMetaData`.`dbType`), 'oceanbase')
        then nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(?:.*?\\.)?(.*)$', 1), '') else nullif(m.`allMetaData`.`db`, '')
        end as db_name,
  case when lower(m.`allMetaData`.`dbType`) in ('ob_oracle', 'ob_in_oracle_mode')
    then nullif(regexp_extract(m.`allMetaData`.`db`, '^(?s)(?:.*?\\.)?(.*)$', 1), '')
      when lower(m.`allMetaData`.`dbType`) = 'oracle' or startswith(lower(m.`allMetaData`.`dbType`), 'db2')
        then nullif(m.`allMetaData`.`db`, '') else cast(null as string) end as schema_name,
  nullif(m.`allMetaData`.`table_name`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed, if(kind = 'row', types, null) as types,
  case when verdict = 'control heartbeat' then
    coalesce(if(m.`allMetaData`.`timestamp` = '0', null, instant_of_seconds(m.`allMetaData`.`timestamp`)),
    if(m.`allMetaData`.`checkpoint` = '0', null, instant_of_seconds(m.`allMetaData`.`checkpoint`)))
    else if(m.`allMetaData`.`timestamp` = '0', null, instant_of_seconds(m.`allMetaData`.`timestamp`)) end as event_time,
  cast(null as timestamp) as produced_at,
  coalesce(nullif(m.`allMetaData`.`transId`, ''), nullif(m.`allMetaData`.`uniqueId`, '')) as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', if(op = 'snapshot', cast(array() as array<decimal(38,0)>),
      order_position(array(coalesce(second_of_number(m.`allMetaData`.`storeDataSequence`),
      cast(unix_seconds(if(m.`allMetaData`.`timestamp` = '0', null, instant_of_seconds(m.`allMetaData`.`timestamp`))) as string)),
      number_within_second(m.`allMetaData`.`storeDataSequence`)))), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('db_type', m.`allMetaData`.`dbType`, 'cluster', m.`allMetaData`.`clusterId`, 'sequence',
    m.`allMetaData`.`storeDataSequence`,
    'transaction_sequence', case when startswith(lower(m.`allMetaData`.`transId`), '') then nullif(m.`allMetaData`.`uniqueId`, '')
      else cast(null as string) end,
    'checkpoint', m.`allMetaData`.`checkpoint`, 'source_identity', m.`allMetaData`.`source_identity`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'ambiguous_times', names_joined(ambiguous_times),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then coalesce(nullif(m.`postStruct`.`ddl`, ''), nullif(m.`prevStruct`.`ddl`, '')) end as statement,
  reason, found_in_message(reason, 'recordType', m.`recordType`, coalesce(m.`postStruct`.`ddl`, m.`prevStruct`.`ddl`)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
