-- oms_canal_to_changelog: the messages of source oms_canal, as rows of the changelog
-- format     oms_canal: OceanBase OMS to Kafka, serializer CANAL
-- reads      oms_canal_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(
      concat('[', exact_numbers(raw), ',{"seal":"', xxhash64(raw), '"}]'),
      'array<struct<`type` string, `database` string, `table` string, `sql` string, `es` string, `ts` string, `isDdl` string,
        `data` array<map<string,string>>, `old` array<map<string,string>>, `pkNames` array<string>,
        `mysqlType` map<string,string>, `seal` string>>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '4')) as documents
  from `oms_canal_messages`
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits
  from (
    select *, `oms_canal_message`(get(documents, 0), unusual, marked_numbers(unusual, concat('\uFFFF', xxhash64(unusual), ':'))) as message
    from (select *, `oms_canal_unusual`(get(documents, 0), get(documents, 1).seal, raw) as unusual from decoded)
  )
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select *,
    case
      when raw is null then 'control tombstone'
      when m.`isDdl` = 'true' and m.`type` in ('INSERT', 'UPDATE', 'DELETE', 'INIT', 'ROW', 'XACOMMIT', 'XAROLLBACK', 'MHEARTBEAT', 'GTID')
        then 'ddl by_statement'
      when m.`type` = 'INSERT' then 'row insert'
      when m.`type` = 'UPDATE' then 'row update'
      when m.`type` = 'DELETE' then 'row delete'
      when m.`type` in ('INIT', 'ROW') then 'row snapshot'
      when m.`type` = 'CREATE' then 'ddl create'
      when m.`type` = 'ALTER' then 'ddl alter'
      when m.`type` = 'ERASE' then 'ddl drop'
      when m.`type` = 'TRUNCATE' then 'ddl truncate'
      when m.`type` = 'RENAME' then 'ddl rename'
      when m.`type` in ('CINDEX', 'DINDEX') then 'ddl index'
      when m.`type` = 'QUERY' then 'ddl by_statement'
      when m.`type` = 'XACOMMIT' then 'control commit'
      when m.`type` = 'XAROLLBACK' then 'control rollback'
      when m.`type` = 'MHEARTBEAT' then 'control heartbeat'
      when m.`type` = 'GTID' then 'control other'
      when m.`isDdl` = 'true' then 'ddl by_statement'
    end as verdict
  from parsed
),

-- The rows of each row change, and the rows before an update.  [each, before, after]
row_lists as (
  select *,
    case when verdict = 'row delete' then case when exists(m.`data`, r -> size(r) > 0) then m.`data` else m.`old` end else m.`data`
      end as rows,
    case when verdict = 'row update' then m.`old` end as rows_before
  from classified
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case
      when parse_error is not null then parse_error
      when verdict is null and m.`type` is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      when verdict in ('row insert', 'row update', 'row snapshot') and (array_contains(misfits, 'data') or exists(m.`data`, r -> r is null))
        then 'row-not-an-object'
      when verdict = 'row delete' and (array_contains(misfits, 'data') or exists(m.`data`, r -> r is null)
        or not coalesce(exists(m.`data`, r -> size(r) > 0), false) and (array_contains(misfits, 'old') or exists(m.`old`, r -> r is null)))
          then 'row-not-an-object'
      when not coalesce(exists(rows, r -> size(r) > 0), false)
        then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image')
      when verdict = 'row update' and array_contains(misfits, 'old') then 'row-not-an-object'
      when size(rows_before) > size(rows) then 'uneven-rows'
    end as reason,
    key_columns(m.`pkNames`, array()) as key_names,
    table_columns(m.`mysqlType`, null, array()) as types
  from row_lists
),

-- One row for each row change; every other message stays one row.
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types,
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, case
      when split_part(verdict, ' ', 2) = 'by_statement' then op_of_statement(nullif(m.`sql`, ''))
      else split_part(verdict, ' ', 2) end, null) as op,
    `oms_canal_readers`(types) as readers,
    coalesce(position, 0) as row_index,
    case when verdict = 'row delete' then row when verdict = 'row update' then get(rows_before, position) end as sent_before,
    case when verdict in ('row insert', 'row update', 'row snapshot') then row end as sent_after
  from checked
  lateral view outer posexplode(if(reason is null and verdict like 'row %', rows, null)) as position, row
),

-- The images as sent: of equal names the last counts, and members that are not columns are left out.
clean_images as (
  select * except (sent_before, sent_after),
    table_columns(sent_before, types, array()) as sent_before,
    table_columns(sent_after, types, array()) as sent_after
  from exploded
),

-- The images in canonical text. In `texts` a value that could not be read is null, here it is as sent.  [types.table, values]
canonical as (
  select *,
    with_texts(sent_before, texts_before) as canonical_before,
    with_texts(sent_after, texts_after) as canonical_after
  from (
    select *,
      `oms_canal_texts`(sent_before, readers) as texts_before,
      `oms_canal_texts`(sent_after, readers) as texts_after
    from clean_images
  )
),

-- Both images. One that holds only some columns is laid over the other.  [before.over, after.over]
images as (
  select *,
    if(verdict = 'row update', map_concat(canonical_after, canonical_before), canonical_before) as before,
    canonical_after as after
  from canonical
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    case when kind = 'row' then columns_of(coalesce(after, before), key_names) end as key,
    if(op = 'update' and arrays_overlap(key_names, map_keys(sent_before)), columns_of(before, key_names), null) as key_before
  from images
)

-- The columns of the contract, in its order.
select
  kind, 'oms_canal' as source, 'oms_canal' as format, op,
  cast(null as string) as tenant,
  nullif(m.`database`, '') as db_name,
  cast(null as string) as schema_name,
  nullif(m.`table`, '') as table_name,
  key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  key_text(key) as key_text,
  before, after,
  case when kind <> 'row' then null when before is null then 'none' else 'full' end as before_image,
  case when kind <> 'row' then null when after is null then 'none' else 'full' end as after_image,
  case when op = 'update' then changed_among(map_keys(sent_before), before, after) end as changed,
  if(kind = 'row', types, null) as types,
  instant_of_milliseconds(nullif(m.`es`, '0')) as event_time,
  instant_of_milliseconds(nullif(m.`ts`, '0')) as produced_at,
  cast(null as string) as tx_id,
  named_struct('generation', 0, 'phase', if(reason is null and verdict = 'row snapshot', 0, 1),
    'position', cast(array() as array<decimal(38,0)>), 'arrival', arrival, 'row', row_index) as seq,
  cast(null as string) as pair_id,
  known_entries(map(
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      'as_sent', names_joined(concat(columns_not_read(canonical_before, texts_before), columns_not_read(canonical_after, texts_after))),
      'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
  origin,
  case when kind = 'ddl' then nullif(m.`sql`, '') end as statement,
  reason,
  found_in_message(reason, 'type', m.`type`, m.`sql`) as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from keyed
