-- oms_debezium_smt_to_changelog: the messages of source oms_debezium_smt, as rows of the changelog
-- format     oms_debezium_smt: OceanBase OMS to Kafka, serializer DEBEZIUM_SMT, a flat row with __deleted and nothing else
-- reads      oms_debezium_smt_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`payload` struct<
          `__op` string, `__deleted` string, `.` map<string,string>>,
        `__op` string, `__deleted` string, `.` map<string,string>,
        `schema` struct<
          `fields` array<struct<
            `field`:string,`name`:string,`type`:string,`default`:string,`parameters`:struct<
                `connect.decimal.precision`:string,`scale`:string>>>>,
        `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '5')) as document
  from `oms_debezium_smt_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `oms_debezium_smt_message`(document, raw) as message from decoded)
),

-- The fields where paths start, with what came beside them.  [message.root, $message]
placed as (
  select * except (m, found),
    struct(found.*,
      struct(m.`schema`) as `$message`) as m
  from (select *,
      coalesce(m.`payload`, struct(m.`__op`, m.`__deleted`, m.`.`)) as found
    from parsed)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case when raw is null then 'control tombstone'
      when m.`__deleted` = 'true' then 'row delete'
      when m.`__deleted` = 'false' then 'row update' end as verdict
  from placed
),

-- The images of each row change.  [before, after]
message_images as (
  select *, array('__deleted') as hidden, case when verdict = 'row delete' then m.`.` end as found_before,
    case when verdict = 'row update' then m.`.` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`__op` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when array_contains(misfits, '.') then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0
        and (size(if(verdict = 'row delete', found_before, found_after)) > 1
        or size(table_columns(if(verdict = 'row delete', found_before, found_after), null, hidden)) > 0), false) then 'no-row-image'
        end as reason,
    members_of_key(origin.key, cast(array('payload') as array<string>), hidden) as key_names,
    map_from_entries(transform(filter(m.`$message`.`schema`.`fields`, t -> not coalesce(array_contains(hidden, t.`field`), false)
      and t.`field` is not null), t ->
      struct(t.`field`,
      concat(coalesce(t.`name`, t.`type`),
      coalesce(concat('(', nullif(concat_ws(',', t.`parameters`.`connect.decimal.precision`, t.`parameters`.`scale`), ''), ')'), ''))))) as
      types,
    `oms_debezium_smt_readers`(types) as readers
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.  [drop]
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, types, hidden), null) as sent_before,
    if(reason is null, table_columns(found_after, types, hidden), null) as sent_after,
    map_from_entries(transform(filter(m.`$message`.`schema`.`fields`, t -> t.`default` is not null), t ->
      struct(coalesce(t.`field`, ''), t.`default`))) as defaults
  from checked
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *, `oms_debezium_smt_texts`(sent_before, readers) as texts_before, `oms_debezium_smt_texts`(sent_after, readers) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after,
    `oms_debezium_smt_texts`(defaults, readers) as texts_defaults
  from exploded
),

-- Both images in canonical text.
images as (
  select *, if(size(sent_before) > 0, read_before, null) as before, read_after as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent,
    concat(`oms_debezium_smt_ambiguous`(sent_before, readers, texts_before), `oms_debezium_smt_ambiguous`(sent_after, readers, texts_after))
      as ambiguous_times
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
  kind, 'oms_debezium_smt' as source, 'oms_debezium_smt' as format, op, cast(null as string) as tenant,
  cast(null as string) as db_name, cast(null as string) as schema_name, cast(null as string) as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
  case when op = 'update' then changed_columns(before, after, types) end as changed,
  if(kind in ('row', 'ddl'), types, null) as types, cast(null as timestamp) as event_time, cast(null as timestamp) as produced_at,
  cast(null as string) as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position', cast(array() as array<decimal(38,0)>), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
    'defaults', nullif(to_json(with_texts(defaults, texts_defaults)), '{}'), 'as_sent', names_joined(columns_as_sent),
    'ambiguous_times', names_joined(ambiguous_times), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then cast(null as string) end as statement, reason,
  found_in_message(reason, '__op', m.`__op`, cast(null as string)) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
