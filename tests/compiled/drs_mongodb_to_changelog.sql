-- drs_mongodb_to_changelog: the messages of source drs_mongodb, as rows of the changelog
-- format     drs_mongodb: Huawei DRS to Kafka, "JSON", from MongoDB and DDS
-- reads      drs_mongodb_messages: raw string, origin struct, arrival array
-- functions  Spark's own, and shell_document, shell_patch of runner/functions
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`op` string, `db` string, `coll` string, `es` string, `ts` string, `clusterTime` string, `id` string, `dbType` string,
        `recordType` string, `extra` string, `value` string, `where` string, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '1')) as document
  from `drs_mongodb_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error
  from (select *, `drs_mongodb_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`op` = 'INSERT' and m.`recordType` = 'view' then 'ddl create'
      when m.`op` = 'INSERT' then 'row insert'
      when m.`op` = 'UPDATE' and m.`recordType` = 'replace' then 'row update'
      when m.`op` = 'UPDATE' and m.`recordType` = 'update' then 'row update 2'
      when m.`op` = 'DELETE' and m.`recordType` in ('doc', '') then 'row delete'
      when m.`op` = 'DELETE' and m.`recordType` is null then 'row delete'
      when m.`op` = 'DELETE' and m.`recordType` = 'view' then 'ddl drop'
      when m.`op` = 'DDL' then 'ddl other' end as verdict
  from parsed
),

-- Documents that came as texts in another language than JSON.  [text]
parsed_texts as (
  select *,
    shell_document(if(verdict in ('row insert', 'row update', 'row delete'), m.`value`, null)) as `shell_document_value`,
    shell_document(if(verdict in ('row insert', 'row update', 'row update 2', 'row delete'), m.`where`, null)) as `shell_document_where`,
    shell_patch(if(verdict = 'row update 2', m.`value`, null)) as `shell_patch_value`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case verdict when 'row update 2' then `shell_patch_value`.removed end as removed,
    case when verdict = 'row delete' then `shell_document_value`.values end as found_before,
    case when verdict in ('row insert', 'row update') then `shell_document_value`.values
      when verdict = 'row update 2' then `shell_patch_value`.values end as found_after
  from parsed_texts
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    flatten(array_compact(array(
      array_intersect(`shell_document_where`.as_sent, array('_id')),
      case when verdict = 'row delete' then `shell_document_value`.as_sent end,
      case when verdict in ('row insert', 'row update') then `shell_document_value`.as_sent
      when verdict = 'row update 2' then `shell_patch_value`.as_sent end))) as unfit_columns,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`op` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict = 'row insert' and `shell_document_value`.reason is not null then `shell_document_value`.reason
      when verdict = 'row update' and `shell_document_value`.reason is not null then `shell_document_value`.reason
      when verdict = 'row update 2' and `shell_patch_value`.reason is not null then `shell_patch_value`.reason
      when verdict = 'row delete' and `shell_document_value`.reason is not null then `shell_document_value`.reason
      when not (verdict = 'row update 2') and not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false)
        then 'no-row-image'
      when found_after is null and verdict = 'row update 2' then 'no-row-image' end as reason,
    columns_of(`shell_document_where`.values, null, array('_id')) as key_image,
    if(map_keys(`shell_document_where`.values) = array('_id'), null, m.`where`) as more_than_key,
    array('_id') as key_names,
    map_concat(coalesce(columns_of(`shell_document_where`.types, null, array('_id')), map()),
      coalesce(case when verdict = 'row delete' then `shell_document_value`.types end, map()),
      coalesce(case when verdict in ('row insert', 'row update') then `shell_document_value`.types
      when verdict = 'row update 2' then `shell_patch_value`.types end, map())) as types
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, key_image, more_than_key, types, removed, unfit_columns,
    if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, null, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, null, array()), null) as sent_after
  from checked
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, sent_before, null) as before, sent_after as after, map_keys(sent_before) as columns_before,
    if(kind = 'row', unfit_columns, array()) as columns_as_sent
  from exploded
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    case when kind = 'row' then coalesce(columns_of(after, before, key_names), key_image) end as key,
    if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null) as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, 'drs_mongodb' as source, 'drs_mongodb' as format, op, cast(null as string) as tenant, nullif(m.`db`, '') as db_name,
  cast(null as string) as schema_name, nullif(m.`coll`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is not null and verdict = 'row delete' then 'key'
    else completeness(before, after, types, key_names) end as before_image,
  case when kind <> 'row' then null when after is not null and verdict = 'row update 2' then 'patch'
    else completeness(after, before, types, key_names) end as after_image,
  case when kind = 'row' and verdict = 'row update 2' then sort_array(array_union(map_keys(after), coalesce(removed, array())))
      when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind = 'row', types, null) as types, if(m.`es` = '0', null, instant_of_milliseconds(m.`es`)) as event_time,
  if(m.`ts` = '0', null, instant_of_milliseconds(m.`ts`)) as produced_at, cast(null as string) as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position',
      order_position(array(if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 0), null),
      if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 1), null), m.`id`)), 'arrival', arrival,
      'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('message_id', m.`id`, 'clustertime', m.`clusterTime`, 'db_type', m.`dbType`, 'record_type', m.`recordType`, 'extra',
    m.`extra`,
    'where', if(kind = 'row', more_than_key, null),
    'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null), 'as_sent', names_joined(columns_as_sent),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin,
  case when kind = 'ddl' then case when verdict in ('ddl create', 'ddl drop', 'ddl other') then nullif(m.`value`, '')
    else cast(null as string) end end as statement,
  reason, found_in_message(reason, 'op', m.`op`, cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
