-- qlik_replicate_to_changelog: the messages of source qlik_replicate, as rows of the changelog
-- format     qlik_replicate: Qlik Replicate to Kafka, JSON
-- reads      qlik_replicate_messages: raw string, origin struct, arrival array
-- zone       UTC
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`message` struct<
          `headers` struct<
            `operation` string, `transactionId` string, `timestamp` string, `changeSequence` string, `streamPosition` string,
            `transactionEventCounter` string>,
          `lineage` struct<
            `schema` string, `table` string, `server` string, `task` string, `timestamp` string>,
          `schema` string, `table` string, `data` map<string,string>, `beforeData` map<string,string>,
          `tableStructure` struct<
            `tableColumns` map<string,struct<`type`:string>>>>,
        `headers` struct<
          `operation` string, `transactionId` string, `timestamp` string, `changeSequence` string, `streamPosition` string,
          `transactionEventCounter` string>,
        `lineage` struct<
          `schema` string, `table` string, `server` string, `task` string, `timestamp` string>,
        `schema` string, `table` string, `type` string, `data` map<string,string>, `beforeData` map<string,string>,
        `tableStructure` struct<
          `tableColumns` map<string,struct<`type`:string>>>,
        `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '5')) as document
  from `qlik_replicate_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `qlik_replicate_message`(document, raw) as message from decoded)
),

-- The fields where paths start, with what came beside them.  [message.root, $message, $topic]
placed as (
  select * except (m, found),
    struct(found.*,
      struct(m.`type`) as `$message`,
      origin.topic as `$topic`) as m
  from (select *,
      coalesce(m.`message`, struct(m.`headers`, m.`lineage`, m.`schema`, m.`table`, m.`data`, m.`beforeData`, m.`tableStructure`)) as found
    from parsed)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone' end,
      case m.`headers`.`operation` when 'REFRESH' then 'row snapshot' when 'INSERT' then 'row insert' when 'UPDATE' then 'row update'
        when 'DELETE' then 'row delete' end,
      case when m.`headers`.`operation` is null and m.`tableStructure` is not null then 'ddl other' end) as verdict
  from placed
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict = 'row update' then m.`beforeData`
      when verdict = 'row delete' then case when size(m.`beforeData`) > 0 then m.`beforeData` else m.`data` end end as found_before,
    case when verdict in ('row snapshot', 'row insert', 'row update') then m.`data` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`headers`.`operation` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict in ('row snapshot', 'row insert') and array_contains(misfits, 'data') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'data') or array_contains(misfits, 'beforeData')) then 'row-not-an-object'
      when verdict = 'row delete' and
        (array_contains(misfits, 'beforeData') or not coalesce(size(m.`beforeData`) > 0, false) and (array_contains(misfits, 'data')))
        then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then 'no-row-image' end as reason,
    cast(null as array<string>) as key_names,
    map_concat(transform_values(m.`tableStructure`.`tableColumns`, (c, t) -> t.`type`)) as types,
    `qlik_replicate_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, if(verdict = 'row delete', key_part(found_before, types, array(), null, key_names),
      table_columns(found_before, types, array())), null) as sent_before,
    if(reason is null, table_columns(found_after, types, array()), null) as sent_after,
    `qlik_replicate_in_doubt`(raw, sent_before, sent_after, readers) as json_in_doubt,
    case when reason is null and verdict in ('row snapshot', 'row insert')
      then other_image(m.`beforeData`, coalesce(found_before, found_after), array())
      when reason is null and verdict = 'row delete' then other_image(m.`data`, coalesce(found_before, found_after), array())
        end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `qlik_replicate_texts`(sent_before, readers, json_in_doubt) as texts_before,
    `qlik_replicate_texts`(sent_after, readers, json_in_doubt) as texts_after,
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
  kind, 'qlik_replicate' as source, 'qlik_replicate' as format, op, cast(null as string) as tenant, cast(null as string) as db_name,
  coalesce(nullif(m.`lineage`.`schema`, ''), nullif(m.`schema`, ''), nullif(regexp_extract(m.`$topic`, '^(?s)(.*?)\\..*$', 1), '')) as
    schema_name,
  coalesce(nullif(m.`lineage`.`table`, ''), nullif(m.`table`, ''), nullif(regexp_extract(m.`$topic`, '^(?s)(?:.*?\\.)?(.*)$', 1), '')) as
    table_name,
  key, if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  key_text(key) as key_text, before, after,
  case when kind <> 'row' then null when before is not null and verdict = 'row delete'
    and not coalesce(size(array_except(map_keys(before), key_names)) > 0, false) then 'key'
    else completeness(before, after, types, key_names) end as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  case when verdict = 'ddl other' then instant_in_utc(m.`lineage`.`timestamp`) else instant_in_utc(m.`headers`.`timestamp`)
    end as event_time,
  cast(null as timestamp) as produced_at, nullif(m.`headers`.`transactionId`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', order_position(array(m.`headers`.`changeSequence`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('record_type', m.`$message`.`type`, 'sequence', m.`headers`.`changeSequence`, 'log_position',
    m.`headers`.`streamPosition`,
    'transaction_position', m.`headers`.`transactionEventCounter`, 'server', m.`lineage`.`server`,
    'source_identity', m.`lineage`.`task`, 'other_image', other_image, 'as_sent', names_joined(columns_as_sent),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  found_in_message(reason, 'headers.operation', m.`headers`.`operation`, cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
