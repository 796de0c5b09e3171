-- rows_to_changelog: the messages of source rows, as rows of the changelog
-- format     rows: Rows of tables, as files of a dump or a query of a database have them
-- reads      rows_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`op` string, `tenant` string, `database` string, `schema` string, `table` string, `taken_at` string, `sent_at` string,
        `mirror` string, `line` string, `row` map<string,string>, `types` map<string,string>, `problem` string, `_seal` string,
        `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '2')) as document
  from `rows_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `rows_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone'
      when m.`problem` is not null then 'dead_letter not-a-row' end,
      case m.`op` when 'snapshot' then 'row snapshot' when 'update' then 'row update' when 'delete' then 'row delete' end,
      case when m.`op` is null then 'row snapshot' end) as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select *, case when verdict = 'row delete' then m.`row` end as found_before,
    case when verdict in ('row snapshot', 'row update') then m.`row` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`op` is null, 'no-op', 'unknown-op')
      when verdict like 'dead\\_letter %' then substring_index(substring_index(verdict, ' ', 2), ' ', -1)
      when verdict not like 'row %' then null
      when array_contains(misfits, 'row') then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then 'no-row-image' end as reason,
    cast(null as array<string>) as key_names, table_columns(m.`types`, null, array()) as types, `rows_readers`(types) as readers
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
    `rows_in_doubt`(raw, sent_before, sent_after, readers) as json_in_doubt
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *, `rows_texts`(sent_before, readers, json_in_doubt) as texts_before,
    `rows_texts`(sent_after, readers, json_in_doubt) as texts_after, with_texts(sent_before, texts_before) as read_before,
    with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent,
    concat(`rows_ambiguous`(sent_before, readers, texts_before), `rows_ambiguous`(sent_after, readers, texts_after)) as ambiguous_times
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
  kind, 'rows' as source, 'rows' as format, op, nullif(m.`tenant`, '') as tenant, nullif(m.`database`, '') as db_name,
  nullif(m.`schema`, '') as schema_name, nullif(m.`table`, '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  case when kind <> 'row' then null when after is not null and verdict in ('row snapshot', 'row update') then 'partial'
    else completeness(after, before, types, key_names) end as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types, instant_with_offset(m.`taken_at`) as event_time,
  instant_with_offset(m.`sent_at`) as produced_at, cast(null as string) as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', cast(array() as array<decimal(38,0)>), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('record_type', m.`mirror`, 'as_sent', names_joined(columns_as_sent), 'ambiguous_times', names_joined(ambiguous_times),
    'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  case reason
    when 'not-a-row' then concat('problem: ', coalesce(concat('"', m.`problem`, '"'), 'missing'), ', ', 'line: ',
      coalesce(concat('"', m.`line`, '"'), 'missing'))
    else found_in_message(reason, 'op', m.`op`, cast(null as string)) end as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
