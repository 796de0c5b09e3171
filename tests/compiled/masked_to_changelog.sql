-- masked_to_changelog: the messages of source masked, as rows of the changelog
-- format     canal: Alibaba Canal FlatMessage, one binlog event a message
-- reads      masked_messages: raw string, origin struct, arrival array
-- zone       not declared: local times stay wall clock
with

-- The messages as they came: one that lands once more may have been kept sealed.  [mask]
opened as (
  select coalesce(cast(opened_text(raw, mask_keys) as string), raw) as raw, opened_origin(origin, mask_keys) as origin, arrival
  from `masked_messages` cross join mask_keys
),

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.  [message.numbers]
decoded as (
  select *,
    from_json(sealed(exact_numbers(raw), xxhash64(raw)),
      'struct<`type` string, `database` string, `table` string, `sql` string, `es` string, `ts` string, `gtid` string, `id` string,
        `isDdl` string, `data` array<map<string,string>>, `old` array<map<string,string>>, `pkNames` array<string>,
        `mysqlType` map<string,string>, `_seal` string, `_corrupt_record` string>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647',
        'maxNestingDepth', '3')) as document
  from opened
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival, raw, message.document as m, message.reason as parse_error, message.misfits,
    array('__#alibaba_rds_row_id#__', '#alibaba_rds_row_id#') as hidden
  from (select *, `masked_message`(document, raw) as message from decoded)
),

-- What each message is, in words: kind, then op; its rows, those before an update, and their types.  [op, each, before, after, types]
classified as (
  select *,
    coalesce(
      case when raw is null then 'control tombstone'
      when m.`isDdl` = 'true' and m.`type` in ('INSERT', 'UPDATE', 'DELETE', 'INIT', 'ROW', 'XACOMMIT', 'XAROLLBACK', 'MHEARTBEAT', 'GTID')
        then 'ddl by_statement'
      when m.`isDdl` = 'false' and m.`type` = 'QUERY' then 'control other' end,
      case m.`type` when 'INSERT' then 'row insert' when 'UPDATE' then 'row update' when 'DELETE' then 'row delete'
        when 'INIT' then 'row snapshot' when 'ROW' then 'row snapshot' when 'CREATE' then 'ddl create' when 'ALTER' then 'ddl alter'
        when 'ERASE' then 'ddl drop' when 'TRUNCATE' then 'ddl truncate' when 'RENAME' then 'ddl rename'
        when 'CINDEX' then 'ddl index' when 'DINDEX' then 'ddl index' when 'QUERY' then 'ddl by_statement'
        when 'XACOMMIT' then 'control commit' when 'XAROLLBACK' then 'control rollback' when 'MHEARTBEAT' then 'control heartbeat'
        when 'GTID' then 'control other' end,
      case when m.`isDdl` = 'true' then 'ddl by_statement' end) as verdict,
    table_columns(m.`mysqlType`, null, hidden) as types, `masked_readers`(types) as readers,
    case when verdict = 'row delete' then if(exists(m.`data`, r -> size(r) > 0), m.`data`, m.`old`) else m.`data` end as rows,
    case when verdict = 'row update' then m.`old` end as rows_before,
    case when verdict in ('row insert', 'row delete', 'row snapshot') then m.`old` end as other_rows
  from parsed
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select *,
    case when parse_error is not null then parse_error
      when verdict is null then if(m.`type` is null, 'no-op', 'unknown-op')
      when verdict not like 'row %' then null
      when array_contains(misfits, 'data') or exists(m.`data`, r -> r is null) then 'row-not-an-object'
      when verdict = 'row delete' and not coalesce(exists(m.`data`, r -> size(r) > 0), false)
        and (array_contains(misfits, 'old') or exists(m.`old`, r -> r is null)) then 'row-not-an-object'
      when not coalesce(exists(rows, r -> size(r) > 0), false)
        then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image')
      when verdict = 'row update' and array_contains(misfits, 'old') then 'row-not-an-object'
      when size(coalesce(rows_before, other_rows)) > size(rows) then 'uneven-rows' end as reason,
    array_compact(array(cast(null as string), nullif(m.`database`, ''), cast(null as string), nullif(m.`table`, ''))) as table_names,
    coalesce(nullif(key_columns(m.`pkNames`, hidden), cast(array() as array<string>)), case
      when slice(table_names, -2, 2) = array('shop', 'customers') then array('id') end) as key_names,
    `masked_in_doubt`(raw, rows_before, rows, readers) as rows_in_doubt
  from classified
),

-- One row for each row change; every other message stays one row. In the images as sent only columns are left.  [drop]
exploded as (
  select origin, arrival, m, verdict, reason, key_names, types, readers, zeros_allowed, json_in_doubt, raw,
    if(reason is null, substring_index(verdict, ' ', 1), 'dead_letter') as kind,
    coalesce(nth, 0) as row_index,
    case when verdict like '% by\\_statement%' then op_of_statement(m.`sql`)
      when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end as op,
    coalesce(found_after['__#alibaba_rds_row_id#__'], found_before['__#alibaba_rds_row_id#__'], found_after['#alibaba_rds_row_id#'],
      found_before['#alibaba_rds_row_id#']) as `meta_rowid`,
    table_columns(found_before, types, hidden) as sent_before, table_columns(found_after, types, hidden) as sent_after,
    other_image(other_row, coalesce(found_after, found_before), hidden) as other_image
  from (select * except (raw, m.`data`, m.`old`, m.`pkNames`, m.`mysqlType`), if(reason is null, null, raw) as raw,
    if(1L * size(rows) * size(readers) > 10, greatest(100000, octet_length(raw)) div size(rows), null) as zeros_allowed from checked)
  lateral view outer inline(transform(if(reason is null and verdict like 'row %', rows, null), (row, nth) ->
    struct(nth, case verdict when 'row delete' then row when 'row update' then get(rows_before, nth) end as found_before,
      case when verdict in ('row insert', 'row update', 'row snapshot') then row end as found_after,
      get(other_rows, nth) as other_row,
      array_join(transform(rows_in_doubt, texts -> get(texts, nth)), ',') as json_in_doubt))) each
),

-- The canonical text of the values whose text as sent may be another, and the images with it.  [types.table, values]
texts as (
  select *,
    `masked_texts`(sent_before, readers, zeros_allowed, json_in_doubt) as texts_before,
    `masked_texts`(sent_after, readers, zeros_allowed, json_in_doubt) as texts_after,
    with_texts(sent_before, texts_before) as read_before, with_texts(sent_after, texts_after) as read_after
  from exploded
),

-- Both images in canonical text; one of only some columns is laid over the other.  [before.over, after.over]  [not_sent]
images as (
  select *,
    sent_columns(if(verdict = 'row update', map_concat(read_after, read_before), read_before), types, 'json', array('JSON_*')) as before,
    sent_columns(read_after, types, 'json', array('JSON_*')) as after, map_keys(sent_before) as columns_before,
    concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) as columns_as_sent
  from texts
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select *,
    case when kind = 'row' then columns_of(after, before, key_names) end as key,
    if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null) as key_before
  from images
),

-- The rows of the changelog, with all values.
rows as (
  select kind, 'masked' as source, 'canal' as format, op, cast(null as string) as tenant, nullif(m.`database`, '') as db_name,
    cast(null as string) as schema_name, nullif(m.`table`, '') as table_name, key,
    if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
    key_text(key) as key_text, before, after,
    if(kind = 'row', completeness(before, after, types, key_names), null) as before_image,
    if(kind = 'row', completeness(after, before, types, key_names), null) as after_image,
    case when op = 'update' then changed_among(columns_before, before, after) end as changed,
    if(kind in ('row', 'ddl'), types, null) as types,
    if(m.`es` = '0', null, instant_of_milliseconds(m.`es`)) as event_time,
    if(m.`ts` = '0', null, instant_of_milliseconds(m.`ts`)) as produced_at,
    cast(null as string) as tx_id,
    named_struct('generation', 0, 'phase', 1,
    'position', cast(array() as array<decimal(38,0)>), 'arrival', arrival, 'row', row_index) as seq,
    cast(null as string) as pair_id,
    known_entries(map('gtid', m.`gtid`, 'message_id', m.`id`, 'rowid', `meta_rowid`, 'other_image', other_image,
    'key_columns', if(kind in ('row', 'ddl') and key is null, array_join(key_names, ','), null),
    'as_sent', names_joined(columns_as_sent), 'raw_encoding', if(reason = 'not-utf8', 'base64', null))) as meta,
    origin, case when kind = 'ddl' then nullif(m.`sql`, '') end as statement, reason,
    found_in_message(reason, 'type', m.`type`, m.`sql`) as detail, if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw,
    transform_keys(map_from_entries(reverse(map_entries(before))), (c, v) -> lower(c)) as small_before,
    transform_keys(map_from_entries(reverse(map_entries(after))), (c, v) -> lower(c)) as small_after
  from keyed
),

-- What becomes of the columns of each row; null if the table shows all.  [mask]
masks as (
  select *,
    case
      when table_name is null then map('*', 'hmac')
      when slice(transform(array_compact(array(tenant, db_name, schema_name, table_name)), n -> lower(n)), -2, 2) =
        array('shop', 'customers') then
        map('id', 'none', 'phone', 'hmac', 'email', 'keep domain', 'name', 'drop', 'card', 'last 4', 'born', 'null',
        'rating', 'function canonical_number', '*', 'hmac') end as masks,
    case
      when slice(transform(array_compact(array(tenant, db_name, schema_name, table_name)), n -> lower(n)), -2, 2) =
        array('shop', 'customers') then map('rating', canonical_number(small_before['rating'])) end as given_before,
    case
      when slice(transform(array_compact(array(tenant, db_name, schema_name, table_name)), n -> lower(n)), -2, 2) =
        array('shop', 'customers') then map('rating', canonical_number(small_after['rating'])) end as given_after
  from rows
),

-- The same for columns of a key: different keys stay different. The images in meta.
key_masks as (
  select *, masks_of_key(masks) as key_masks,
    if(masks is null, null,
      masked_columns(from_json(meta['other_image'], 'map<string,string>'), masks, cast(map() as map<string,string>), mask_keys)) as
      `meta_other_image`
  from masks cross join mask_keys
),

-- The keys and what is in meta, without what is hidden.
masked_keys as (
  select * except (key, old_key, meta),
    if(masks is null, key, masked_columns(key, key_masks, cast(map() as map<string,string>), mask_keys)) as key,
    if(masks is null, old_key, masked_columns(old_key, key_masks, cast(map() as map<string,string>), mask_keys)) as old_key,
    if(masks is null, meta,
      transform_values(meta, (k, v) -> case k when 'other_image' then to_json(`meta_other_image`, map('ignoreNullFields', 'false')) else v
      end)) as meta
  from key_masks
)

-- The columns of the contract, in its order.
select
  kind, source, format, op, tenant, db_name, schema_name, table_name, key, old_key,
  if(masks is null, key_text, key_text(key)) as key_text,
  if(masks is null, before, masked_columns(before, masks, given_before, mask_keys)) as before,
  if(masks is null, after, masked_columns(after, masks, given_after, mask_keys)) as after, before_image, after_image,
  if(masks is null, changed, masked_names(changed, masks)) as changed, if(masks is null, types, masked_types(types, masks)) as types,
  event_time, produced_at, tx_id, seq, pair_id,
  if(masks is not null and raw is not null, map_concat(coalesce(meta, map()), map('raw_encoding', 'sealed')), meta) as meta,
  if(masks is not null and is_masked_key(key, masks), sealed_origin(origin, mask_keys), origin) as origin,
  if(masks is null, statement, statement_without_values(statement, op)) as statement, reason,
  if(masks is null, detail, cast(null as string)) as detail,
  if(masks is not null, sealed_text(if(meta['raw_encoding'] = 'base64', unbase64(raw), cast(raw as binary)), mask_keys), raw) as raw
from masked_keys
