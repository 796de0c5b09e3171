-- oms_shareplex_to_changelog: the messages of source oms_shareplex, as rows of the changelog
-- format     oms_shareplex: OceanBase OMS to Kafka, serializer SHAREPLEX
-- reads      oms_shareplex_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`meta` struct<
          `op` string, `table` string, `trans` string, `time` string, `posttime` string, `scn` string, `rowid` string, `seq` string,
          `idx` string, `size` string>,
        `sql` struct<`ddl` string>, `data` map<string,string>, `key` map<string,string>, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '2')) as document
  from `oms_shareplex_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (select *, `oms_shareplex_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone' end,
      case m.`meta`.`op` when 'ins' then 'row insert' when 'upd' then 'row update' when 'del' then 'row delete' when 'ddl'
        then 'ddl by_statement' end) as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select *,
    case when verdict = 'row update' then m.`key`
      when verdict = 'row delete' then m.`data` end as found_before,
    case when verdict in ('row insert', 'row update') then m.`data` end as found_after
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`meta`.`op` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when verdict in ('row insert', 'row delete') and array_contains(misfits, 'data') then 'row-not-an-object'
      when verdict = 'row update' and (array_contains(misfits, 'data') or array_contains(misfits, 'key')) then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0 or verdict = 'row update'
        and found_after is not null and size(found_before) > 0, false)
        then if(nullif(m.`sql`.`ddl`, '') is not null, 'statement-without-rows', 'no-row-image') end as reason,
    cast(null as array<string>) as key_names, cast(null as map<string,string>) as types
  from message_images
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, if(reason is null, null, raw) as raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    0 as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`sql`.`ddl`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    if(reason is null, table_columns(found_before, null, array()), null) as sent_before,
    if(reason is null, table_columns(found_after, null, array()), null) as sent_after,
    case when reason is null and verdict in ('row insert', 'row delete')
      then other_image(m.`key`, coalesce(found_before, found_after), array()) end as other_image
  from checked
),

-- Both images in canonical text; one of only some columns is laid over the other.  [before.over, after.over]
images as (
  select *, if(size(sent_before) > 0, sent_before, null) as before,
    if(verdict = 'row update' and sent_before is not null, map_concat(sent_before, sent_after), sent_after) as after,
    map_keys(sent_before) as columns_before, map_keys(sent_after) as columns_after
  from exploded
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
  kind, 'oms_shareplex' as source, 'oms_shareplex' as format, op, cast(null as string) as tenant,
  nullif(regexp_extract(m.`meta`.`table`, '^(?s)(.*?)\\..*$', 1), '') as db_name, cast(null as string) as schema_name,
  nullif(regexp_extract(m.`meta`.`table`, '^(?s)(?:.*?\\.)?(.*)$', 1), '') as table_name, key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key, key_text(key) as key_text,
  before, after, if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
  case when kind <> 'row' then null when before is null and verdict = 'row update' then 'partial'
    else completeness(after, before, types, key_names) end as after_image,
  case when op = 'update' then changed_among(columns_after, before, after) end as changed, if(kind = 'row', types, null) as types,
  cast(null as timestamp) as event_time, cast(null as timestamp) as produced_at, nullif(m.`meta`.`trans`, '') as tx_id,
  named_struct('generation', 0, 'phase', 1,
    'position',
      order_position(array(coalesce(second_of_number(m.`meta`.`scn`), cast(null as string)), number_within_second(m.`meta`.`scn`))),
      'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map('rowid',
    nullif(if(if(startswith(m.`meta`.`rowid`, m.`meta`.`table`), substr(m.`meta`.`rowid`, length(m.`meta`.`table`) + 1), null) rlike
    '^(?s)\\-(.*)$',
    regexp_extract(if(startswith(m.`meta`.`rowid`, m.`meta`.`table`), substr(m.`meta`.`rowid`, length(m.`meta`.`table`) + 1), null),
    '^(?s)\\-(.*)$', 1), m.`meta`.`rowid`), ''),
    'scn', m.`meta`.`scn`, 'sequence', m.`meta`.`seq`, 'transaction_position', m.`meta`.`idx`, 'transaction_size', m.`meta`.`size`,
    'other_image', other_image, 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin, case when kind = 'ddl' then nullif(m.`sql`.`ddl`, '') end as statement, reason,
  found_in_message(reason, 'meta.op', m.`meta`.`op`, m.`sql`.`ddl`) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
