-- maxwell_to_changelog: the messages of source maxwell, as rows of the changelog
-- format     maxwell: Maxwell's daemon, JSON to Kafka
-- reads      maxwell_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`type` string, `database` string, `table` string, `xid` string, `sql` string, `ts` string, `position` string,
        `xoffset` string, `gtid` string, `server_id` string, `thread_id` string, `data` map<string,string>, `old` map<string,string>,
        `primary_key_columns` array<string>,
        `def` struct<
          `columns` array<struct<`name`:string,`type`:string>>>,
        `encrypted` string, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '4')) as document
  from `maxwell_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `maxwell_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone'
      when m.`encrypted` is not null then 'dead_letter encrypted' end,
      case m.`type` when 'insert' then 'row insert' when 'update' then 'row update' when 'delete' then 'row delete'
        when 'bootstrap-start' then 'control other' when 'bootstrap-insert' then 'row snapshot'
        when 'bootstrap-complete' then 'control other' when 'database-create' then 'ddl create'
        when 'database-alter' then 'ddl alter' when 'database-drop' then 'ddl drop' when 'table-create' then 'ddl create'
        when 'table-alter' then 'ddl alter' when 'table-drop' then 'ddl drop' end) as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict = 'row update' then m.`old`
      when verdict = 'row delete' then case when size(m.`data`) > 0 then m.`data` else m.`old` end end as found_before,
    case when verdict in ('row insert', 'row update', 'row snapshot') then m.`data` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`type` is null, 'no-op', 'unknown-op')
      when verdict like 'dead\\_letter %' then substring_index(substring_index(verdict, ' ', 2), ' ', -1)
      when verdict not like 'row %' then null
      when verdict in ('row insert', 'row snapshot') and array_contains(misfits, 'data') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'data') or array_contains(misfits, 'old')) then 'row-not-an-object'
      when verdict = 'row delete' and
        (array_contains(misfits, 'data') or not coalesce(size(m.`data`) > 0, false) and (array_contains(misfits, 'old')))
        then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false)
        then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    key_columns(m.`primary_key_columns`, array()) as key_names,
    map_from_entries(transform(filter(m.`def`.`columns`, t -> t.`name` is not null), t -> struct(t.`name`, t.`type`))) as types,
    `maxwell_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, types, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, types, array()), null) as sent_after,
    `maxwell_in_doubt`(raw, sent_before, sent_after, readers) as json_in_doubt,
    case when reason is null and verdict in ('row insert', 'row delete', 'row snapshot')
      then other_image(m.`old`, coalesce(found_before, found_after), array()) end as other_image
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `maxwell_texts`(sent_before, readers, json_in_doubt) as texts_before,
    `maxwell_texts`(sent_after, readers, json_in_doubt) as texts_after, with_texts(sent_before, texts_before) as read_before,
    with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text; one of only some columns is laid over the other.  [before.over, after.over]
images as (
  select *,
    if(verdict = 'row update', map_concat(read_after, read_before), read_before) as before,
    read_after as after, map_keys(sent_before) as columns_before,
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
  kind, 'maxwell' as source, 'maxwell' as format, op, cast(null as string) as tenant, nullif(m.`database`, '') as db_name,
  cast(null as string) as schema_name, nullif(m.`table`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_among(columns_before, before, after) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types,
  coalesce(if(m.`ts` = '0', null, instant_of_seconds(m.`ts`)), if(m.`ts` = '0', null, instant_of_milliseconds(m.`ts`))) as event_time,
  cast(null as timestamp) as produced_at, nullif(m.`xid`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position',
      order_position(array(get(slice(regexp_extract_all(m.`position`, '[0-9]+', 0), -2, 2), 0),
      get(slice(regexp_extract_all(m.`position`, '[0-9]+', 0), -2, 2), 1), m.`xoffset`)), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('gtid', m.`gtid`, 'server', m.`server_id`, 'thread', m.`thread_id`, 'log', m.`server_id`, 'log_position', m.`position`,
    'transaction_position', m.`xoffset`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`sql`, '') end as statement, reason,
  case reason
    when 'encrypted' then concat('encrypted: ', coalesce(concat('"', m.`encrypted`, '"'), 'missing'))
    else found_in_message(reason, 'type', m.`type`, m.`sql`) end as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
