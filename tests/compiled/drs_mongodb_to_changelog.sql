-- drs_mongodb_to_changelog: the messages of source drs_mongodb, as rows of the changelog
-- format     drs_mongodb: Huawei DRS to Kafka, "JSON", from MongoDB and DDS
-- reads      drs_mongodb_messages: raw string, origin struct, arrival array
-- functions  Spark's own, and shell_document, shell_patch of runner/functions
-- zone       not declared: local times stay wall clock
-- settings   spark.sql.ansi.enabled = true
--            spark.sql.session.timeZone = UTC
--            spark.sql.mapKeyDedupPolicy = LAST_WIN
--            spark.sql.chunkBase64String.enabled = false
--            spark.sql.variable.substitute = false
--            spark.sql.parser.escapedStringLiterals = false
with

-- Numbers that a JSON parser would round are put in quotes first. Inside a text this does harm: see `marked` below.  [message.numbers]
quoted as (
  select
    *,
    regexp_replace(
      if(contains(raw, ' :') or contains(raw, '\t:') or contains(raw, '\n:') or contains(raw, '\r:'),
        regexp_replace(if(contains(raw, '\\ud') or contains(raw, '\\uD'), regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'), raw), '("\\s++:\\s*+)(?=[-0-9])(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))(?=\\s*+[,}\\]])', '$1"$2"'), if(contains(raw, '\\ud') or contains(raw, '\\uD'), regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'), raw)),
      '":(?<![^\\\\]\\\\":)(\\s*+)(?=[-0-9])(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))(?=\\s*+[,}\\]])',
      '":$1"$2"') as quoted
  from `drs_mongodb_messages`
),

-- The fields that the format names. A seal follows the document: if it is in its place, there is nothing else in the message.
decoded as (
  select
    *,
    from_json(
      concat('[', quoted, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<struct<
        `op` string,
        `db` string,
        `coll` string,
        `es` string,
        `ts` string,
        `clusterTime` string,
        `id` string,
        `dbType` string,
        `value` string,
        `recordType` string,
        `where` string,
        `seal` string>>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) as documents
  from quoted
),

-- Where the quotes did harm, or values are objects or lists, the message is read again with marks that tell which quotes to remove.
marked as (
  select
    *,
    from_json(
      concat('[', marked, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<struct<
        `op` string,
        `db` string,
        `coll` string,
        `es` string,
        `ts` string,
        `clusterTime` string,
        `id` string,
        `dbType` string,
        `value` string,
        `recordType` string,
        `where` string,
        `seal` string>>',
      map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) as marked_documents
  from (
    select
      *,
      case
        when octet_length(quoted) > octet_length(raw) and not coalesce((get(documents, 1).seal = cast(xxhash64(raw) as string) and size(documents) = 2 and get(documents, 0) is not null), false) then regexp_replace(
      regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'),
      '(?s)\\G((?:[^"\\-0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))',
      '$1"\uFFFF$2"')
        when (
          coalesce(startswith(get(documents, 0).`op`, '{') or startswith(get(documents, 0).`op`, '['), false)
          or coalesce(startswith(get(documents, 0).`db`, '{') or startswith(get(documents, 0).`db`, '['), false)
          or coalesce(startswith(get(documents, 0).`coll`, '{') or startswith(get(documents, 0).`coll`, '['), false)
          or coalesce(startswith(get(documents, 0).`es`, '{') or startswith(get(documents, 0).`es`, '['), false)
          or coalesce(startswith(get(documents, 0).`ts`, '{') or startswith(get(documents, 0).`ts`, '['), false)
          or coalesce(startswith(get(documents, 0).`clusterTime`, '{') or startswith(get(documents, 0).`clusterTime`, '['), false)
          or coalesce(startswith(get(documents, 0).`id`, '{') or startswith(get(documents, 0).`id`, '['), false)
          or coalesce(startswith(get(documents, 0).`dbType`, '{') or startswith(get(documents, 0).`dbType`, '['), false)
          or coalesce(startswith(get(documents, 0).`value`, '{') or startswith(get(documents, 0).`value`, '['), false)
          or coalesce(startswith(get(documents, 0).`recordType`, '{') or startswith(get(documents, 0).`recordType`, '['), false)
          or coalesce(startswith(get(documents, 0).`where`, '{') or startswith(get(documents, 0).`where`, '['), false)) and raw rlike '[.eE\\-][-+0-9eE]++\\s*+[,}\\]]' then regexp_replace(
      regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'),
      '(?s)\\G((?:[^"\\-0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))',
      '$1"\uFFFF$2"')
      end as marked
    from decoded
  )
),

-- The one document of each message, or why there is not one.
parsed as (
  select
    * except (documents, marked_documents),
    case
      when parse_error is not null then null
      when marked_documents is null then get(documents, 0)
      else if(get(marked_documents, 0) is null, null, named_struct(
        'op', if(startswith(get(marked_documents, 0).`op`, '\uFFFF'), substr(get(marked_documents, 0).`op`, 2), regexp_replace(get(marked_documents, 0).`op`, '"\uFFFF([^"]*+)"', '$1')),
        'db', if(startswith(get(marked_documents, 0).`db`, '\uFFFF'), substr(get(marked_documents, 0).`db`, 2), regexp_replace(get(marked_documents, 0).`db`, '"\uFFFF([^"]*+)"', '$1')),
        'coll', if(startswith(get(marked_documents, 0).`coll`, '\uFFFF'), substr(get(marked_documents, 0).`coll`, 2), regexp_replace(get(marked_documents, 0).`coll`, '"\uFFFF([^"]*+)"', '$1')),
        'es', if(startswith(get(marked_documents, 0).`es`, '\uFFFF'), substr(get(marked_documents, 0).`es`, 2), regexp_replace(get(marked_documents, 0).`es`, '"\uFFFF([^"]*+)"', '$1')),
        'ts', if(startswith(get(marked_documents, 0).`ts`, '\uFFFF'), substr(get(marked_documents, 0).`ts`, 2), regexp_replace(get(marked_documents, 0).`ts`, '"\uFFFF([^"]*+)"', '$1')),
        'clusterTime', if(startswith(get(marked_documents, 0).`clusterTime`, '\uFFFF'), substr(get(marked_documents, 0).`clusterTime`, 2), regexp_replace(get(marked_documents, 0).`clusterTime`, '"\uFFFF([^"]*+)"', '$1')),
        'id', if(startswith(get(marked_documents, 0).`id`, '\uFFFF'), substr(get(marked_documents, 0).`id`, 2), regexp_replace(get(marked_documents, 0).`id`, '"\uFFFF([^"]*+)"', '$1')),
        'dbType', if(startswith(get(marked_documents, 0).`dbType`, '\uFFFF'), substr(get(marked_documents, 0).`dbType`, 2), regexp_replace(get(marked_documents, 0).`dbType`, '"\uFFFF([^"]*+)"', '$1')),
        'value', if(startswith(get(marked_documents, 0).`value`, '\uFFFF'), substr(get(marked_documents, 0).`value`, 2), regexp_replace(get(marked_documents, 0).`value`, '"\uFFFF([^"]*+)"', '$1')),
        'recordType', if(startswith(get(marked_documents, 0).`recordType`, '\uFFFF'), substr(get(marked_documents, 0).`recordType`, 2), regexp_replace(get(marked_documents, 0).`recordType`, '"\uFFFF([^"]*+)"', '$1')),
        'where', if(startswith(get(marked_documents, 0).`where`, '\uFFFF'), substr(get(marked_documents, 0).`where`, 2), regexp_replace(get(marked_documents, 0).`where`, '"\uFFFF([^"]*+)"', '$1')),
        'seal', if(startswith(get(marked_documents, 0).`seal`, '\uFFFF'), substr(get(marked_documents, 0).`seal`, 2), regexp_replace(get(marked_documents, 0).`seal`, '"\uFFFF([^"]*+)"', '$1'))))
    end as m
  from (
    select
      *,
      case
        when not is_valid_utf8(raw) then 'not-utf8'
        when (get(coalesce(marked_documents, documents), 1).seal = cast(xxhash64(raw) as string) and size(coalesce(marked_documents, documents)) = 2 and get(coalesce(marked_documents, documents), 0) is not null) then null
        when raw is null then null
        when not raw rlike '[^ \\t\\r\\n]' then 'empty'
        when size(from_json(concat('[', coalesce(marked, quoted), ',null]'), 'array<string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))) = 2 then 'not-an-object'
        when from_json(coalesce(marked, quoted), 'map<string,string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) is not null then 'trailing-text'
        when from_json(coalesce(marked, quoted), 'array<string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')) is not null then 'trailing-text'
        when size(from_json(concat('[', coalesce(marked, quoted), ',null]'), 'array<string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))) > 2 then 'trailing-text'
        else 'not-json'
      end as parse_error
    from marked
  )
),

-- What each message is, in words: kind, then op.  [op]
classified as (
  select
    *,
    case
      when raw is null then 'control tombstone'
      when m.`op` = 'INSERT' then 'row insert'
      when m.`op` = 'UPDATE' and m.`recordType` = 'replace' then 'row update'
      when m.`op` = 'UPDATE' and m.`recordType` = 'update' then 'row update 2'
      when m.`op` = 'DELETE' then 'row delete'
      when m.`op` = 'DDL' then 'ddl other'
    end as verdict
  from parsed
),

-- Documents that came as texts in another language than JSON.  [text]
parsed_texts as (
  select
    *,
    shell_document(if(verdict in ('row insert', 'row update', 'row delete'), m.`value`, null)) as `shell_document_value`,
    shell_document(if(verdict in ('row insert', 'row update', 'row update 2', 'row delete'), m.`where`, null)) as `shell_document_where`,
    shell_patch(if(verdict = 'row update 2', m.`value`, null)) as `shell_patch_value`
  from classified
),

-- The images of each row change.  [before, after]
message_images as (
  select
    *,
    case verdict when 'row update 2' then `shell_patch_value`.removed end as removed,
    case
      when verdict = 'row delete' then `shell_document_value`.values end as found_before,
    case
      when verdict = 'row insert' then `shell_document_value`.values
      when verdict = 'row update' then `shell_document_value`.values
      when verdict = 'row update 2' then `shell_patch_value`.values end as found_after
  from parsed_texts
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select
    origin, arrival, raw, verdict, found_before, found_after, removed,
    named_struct(
      'op', m.`op`,
      'db', m.`db`,
      'coll', m.`coll`,
      'es', m.`es`,
      'ts', m.`ts`,
      'clusterTime', m.`clusterTime`,
      'id', m.`id`,
      'dbType', m.`dbType`,
      'value', m.`value`,
      'recordType', m.`recordType`,
      'where', m.`where`) as m,
    case
      when parse_error is not null then parse_error
      when verdict is null and m.`op` is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      when verdict = 'row insert' and `shell_document_value`.reason is not null then `shell_document_value`.reason
      when verdict = 'row update' and `shell_document_value`.reason is not null then `shell_document_value`.reason
      when verdict = 'row update 2' and `shell_patch_value`.reason is not null then `shell_patch_value`.reason
      when verdict = 'row delete' and `shell_document_value`.reason is not null then `shell_document_value`.reason
      when not (verdict = 'row update 2') and not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0, false) then 'no-row-image'
      when found_after is null and verdict = 'row update 2' then 'no-row-image'
    end as reason,
    `shell_document_where`.values as key_image,
    array('_id') as key_names,
    map_concat(coalesce(case verdict when 'row delete' then `shell_document_value`.types end, map()), coalesce(case verdict when 'row insert' then `shell_document_value`.types when 'row update' then `shell_document_value`.types when 'row update 2' then `shell_patch_value`.types end, map())) as types
  from message_images
),

-- One row for each row change; every other message stays one row.
exploded as (
  select
    origin, arrival, m, verdict, reason, key_names, key_image, types, removed,
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, split_part(verdict, ' ', 2), null) as op,
    0 as row_index,
    if(reason is null, found_before, null) as sent_before,
    if(reason is null, found_after, null) as sent_after
  from checked
),

-- The images as sent: of equal names the last counts, and members that are not columns are left out.
clean_images as (
  select
    * except (sent_before, sent_after),
    if(size(array_distinct(map_keys(sent_before))) < size(sent_before),
      map_from_entries(map_entries(sent_before)), sent_before) as sent_before,
    if(size(array_distinct(map_keys(sent_after))) < size(sent_after),
      map_from_entries(map_entries(sent_after)), sent_after) as sent_after
  from exploded
),

-- Both images. One that holds only some columns is laid over the other.  [before.over, after.over]
images as (
  select
    *,
    if(size(sent_before) > 0, sent_before, null) as before,
    sent_after as after
  from clean_images
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select
    *,
    case when kind = 'row' and size(key_image) > 0 then key_image
      when kind = 'row' and size(key_names) > 0 and forall(key_names, k -> map_contains_key(coalesce(after, before), k)) then
      map_from_arrays(key_names, transform(key_names, k -> coalesce(after, before)[k])) end as key,
    case when op = 'update' and arrays_overlap(key_names, map_keys(sent_before)) and forall(key_names, k -> map_contains_key(before, k)) then
      map_from_arrays(key_names, transform(key_names, k -> before[k])) end as key_before
  from images
),

-- The entries of meta, null if not known, with the columns that stayed as sent; the vendor's order numbers.  [meta, seq]
meta_and_order as (
  select
    *,
    if(if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 0), null) rlike '^-?[0-9]{1,38}$', try_cast(if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 0), null) as decimal(38,0)), null) as order_1,
    if(if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 1), null) rlike '^-?[0-9]{1,38}$', try_cast(if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 1), null) as decimal(38,0)), null) as order_2,
    if(m.`id` rlike '^-?[0-9]{1,38}$', try_cast(m.`id` as decimal(38,0)), null) as order_3,
    map(
      'clustertime', nullif(m.`clusterTime`, ''),
      'db_type', nullif(m.`dbType`, ''),
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      'raw_encoding', if(reason = 'not-utf8', 'base64', null)) as meta_entries
  from keyed
)

-- The columns of the contract, in its order.
select
  kind,
  'drs_mongodb' as source,
  'drs_mongodb' as format,
  op,
  cast(null as string) as tenant,
  nullif(m.`db`, '') as db_name,
  cast(null as string) as schema_name,
  nullif(m.`coll`, '') as table_name,
  key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  if(size(key) > 1, to_json(map_from_entries(array_sort(map_entries(key)))), to_json(key)) as key_text,
  before,
  after,
  case when kind <> 'row' then null when before is null then 'none' when verdict = 'row delete' then 'key' when not map_keys(before) = map_keys(after) and exists(map_keys(after), c -> not map_contains_key(before, c)) then 'partial' else 'full' end as before_image,
  case when kind <> 'row' then null when after is null then 'none' when verdict = 'row update 2' then 'patch' else 'full' end as after_image,
  case when kind = 'row' and verdict = 'row update 2' then sort_array(array_union(map_keys(after), coalesce(removed, array()))) when op = 'update' and before is not null and after is not null then
      if(map_keys(before) = map_keys(after),
        sort_array(filter(map_keys(after), (c, i) -> not get(map_values(before), i) <=> get(map_values(after), i))),
        sort_array(filter(array_union(map_keys(before), map_keys(after)), c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c))))) end as changed,
  if(kind = 'row', types, null) as types,
  timestamp_millis(if(m.`es` rlike '^[0-9]{1,15}$' and try_cast(m.`es` as bigint) <= 253402300799999, try_cast(m.`es` as bigint), null)) as event_time,
  timestamp_millis(if(m.`ts` rlike '^[0-9]{1,15}$' and try_cast(m.`ts` as bigint) <= 253402300799999, try_cast(m.`ts` as bigint), null)) as produced_at,
  cast(null as string) as tx_id,
  named_struct(
    'generation', 0,
    'phase', 1,
    'position', case when length(if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 0), null)) > 38 and if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 0), null) rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when length(if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 1), null)) > 38 and if(m.`clusterTime` rlike '^[0-9]', get(regexp_extract_all(m.`clusterTime`, '[0-9]+', 0), 1), null) rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when length(m.`id`) > 38 and m.`id` rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when order_1 is null then cast(array() as array<decimal(38,0)>) when order_2 is null then array(order_1) when order_3 is null then array(order_1, order_2) else array(order_1, order_2, order_3) end,
    'arrival', arrival,
    'row', row_index) as seq,
  cast(null as string) as pair_id,
  map_filter(meta_entries, (entry, value) -> value not in ('', 'null')) as meta,
  origin,
  case when kind = 'ddl' then case verdict when 'ddl other' then nullif(m.`value`, '') else cast(null as string) end end as statement,
  reason,
  case reason
    when 'no-op' then 'op: missing'
    when 'unknown-op' then concat('op: "', m.`op`, '"')
    when 'no-row-image' then concat('op: "', m.`op`, '", without a row')
    when 'row-not-an-object' then concat('op: "', m.`op`, '", with a row that is null or no object')
    when 'uneven-rows' then concat('op: "', m.`op`, '", with more rows before the change than after it')
    when 'unknown-patch' then concat('op: "', m.`op`, '", with an update operator that is not known')
  end as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from meta_and_order
