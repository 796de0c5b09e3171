-- oms_shareplex_to_changelog: the messages of source oms_shareplex, as rows of the changelog
-- format     oms_shareplex: OceanBase OMS to Kafka, serializer SHAREPLEX
-- reads      oms_shareplex_messages: raw string, origin struct, arrival array
-- zone       +08:00
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
  from `oms_shareplex_messages`
),

-- The fields that the format names. A seal follows the document: if it is in its place, there is nothing else in the message.
decoded as (
  select
    *,
    from_json(
      concat('[', quoted, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<struct<
        `meta` struct<
          `op` string,
          `table` string,
          `trans` string,
          `time` string,
          `posttime` string,
          `scn` string,
          `rowid` string,
          `idx` string,
          `seq` string>,
        `sql` struct<
          `ddl` string>,
        `data` map<string,string>,
        `key` map<string,string>,
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
        `meta` struct<
          `op` string,
          `table` string,
          `trans` string,
          `time` string,
          `posttime` string,
          `scn` string,
          `rowid` string,
          `idx` string,
          `seq` string>,
        `sql` struct<
          `ddl` string>,
        `data` map<string,string>,
        `key` map<string,string>,
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
          coalesce(
          coalesce(startswith(get(documents, 0).`meta`.`op`, '{') or startswith(get(documents, 0).`meta`.`op`, '['), false)
          or coalesce(startswith(get(documents, 0).`meta`.`table`, '{') or startswith(get(documents, 0).`meta`.`table`, '['), false)
          or coalesce(startswith(get(documents, 0).`meta`.`trans`, '{') or startswith(get(documents, 0).`meta`.`trans`, '['), false)
          or coalesce(startswith(get(documents, 0).`meta`.`time`, '{') or startswith(get(documents, 0).`meta`.`time`, '['), false)
          or coalesce(startswith(get(documents, 0).`meta`.`posttime`, '{') or startswith(get(documents, 0).`meta`.`posttime`, '['), false)
          or coalesce(startswith(get(documents, 0).`meta`.`scn`, '{') or startswith(get(documents, 0).`meta`.`scn`, '['), false)
          or coalesce(startswith(get(documents, 0).`meta`.`rowid`, '{') or startswith(get(documents, 0).`meta`.`rowid`, '['), false)
          or coalesce(startswith(get(documents, 0).`meta`.`idx`, '{') or startswith(get(documents, 0).`meta`.`idx`, '['), false)
          or coalesce(startswith(get(documents, 0).`meta`.`seq`, '{') or startswith(get(documents, 0).`meta`.`seq`, '['), false), false)
          or coalesce(
          coalesce(startswith(get(documents, 0).`sql`.`ddl`, '{') or startswith(get(documents, 0).`sql`.`ddl`, '['), false), false)
          or coalesce(exists(map_values(get(documents, 0).`data`), v -> startswith(v, '{') or startswith(v, '[')), false)
          or coalesce(exists(map_values(get(documents, 0).`key`), v -> startswith(v, '{') or startswith(v, '[')), false)) and raw rlike '[.eE\\-][-+0-9eE]++\\s*+[,}\\]]' then regexp_replace(
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
        'meta', if(get(marked_documents, 0).`meta` is null, null, named_struct(
          'op', if(startswith(get(marked_documents, 0).`meta`.`op`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`op`, 2), regexp_replace(get(marked_documents, 0).`meta`.`op`, '"\uFFFF([^"]*+)"', '$1')),
          'table', if(startswith(get(marked_documents, 0).`meta`.`table`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`table`, 2), regexp_replace(get(marked_documents, 0).`meta`.`table`, '"\uFFFF([^"]*+)"', '$1')),
          'trans', if(startswith(get(marked_documents, 0).`meta`.`trans`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`trans`, 2), regexp_replace(get(marked_documents, 0).`meta`.`trans`, '"\uFFFF([^"]*+)"', '$1')),
          'time', if(startswith(get(marked_documents, 0).`meta`.`time`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`time`, 2), regexp_replace(get(marked_documents, 0).`meta`.`time`, '"\uFFFF([^"]*+)"', '$1')),
          'posttime', if(startswith(get(marked_documents, 0).`meta`.`posttime`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`posttime`, 2), regexp_replace(get(marked_documents, 0).`meta`.`posttime`, '"\uFFFF([^"]*+)"', '$1')),
          'scn', if(startswith(get(marked_documents, 0).`meta`.`scn`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`scn`, 2), regexp_replace(get(marked_documents, 0).`meta`.`scn`, '"\uFFFF([^"]*+)"', '$1')),
          'rowid', if(startswith(get(marked_documents, 0).`meta`.`rowid`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`rowid`, 2), regexp_replace(get(marked_documents, 0).`meta`.`rowid`, '"\uFFFF([^"]*+)"', '$1')),
          'idx', if(startswith(get(marked_documents, 0).`meta`.`idx`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`idx`, 2), regexp_replace(get(marked_documents, 0).`meta`.`idx`, '"\uFFFF([^"]*+)"', '$1')),
          'seq', if(startswith(get(marked_documents, 0).`meta`.`seq`, '\uFFFF'), substr(get(marked_documents, 0).`meta`.`seq`, 2), regexp_replace(get(marked_documents, 0).`meta`.`seq`, '"\uFFFF([^"]*+)"', '$1')))),
        'sql', if(get(marked_documents, 0).`sql` is null, null, named_struct(
          'ddl', if(startswith(get(marked_documents, 0).`sql`.`ddl`, '\uFFFF'), substr(get(marked_documents, 0).`sql`.`ddl`, 2), regexp_replace(get(marked_documents, 0).`sql`.`ddl`, '"\uFFFF([^"]*+)"', '$1')))),
        'data', transform_values(get(marked_documents, 0).`data`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))),
        'key', transform_values(get(marked_documents, 0).`key`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))),
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
      when m.`meta`.`op` = 'ins' then 'row insert'
      when m.`meta`.`op` = 'upd' then 'row update'
      when m.`meta`.`op` = 'del' then 'row delete'
      when m.`meta`.`op` = 'ddl' then 'ddl by_statement'
    end as verdict
  from parsed
),

-- The images of each row change.  [before, after]
message_images as (
  select
    *,
    case
      when verdict = 'row update' then m.`key`
      when verdict = 'row delete' then m.`data` end as found_before,
    case
      when verdict = 'row insert' then m.`data`
      when verdict = 'row update' then m.`data` end as found_after
  from (
    -- What stands in the place of an image and is not an object. Only row changes without their images need this second reading.
    select
      *,
      case when verdict = 'row insert' and (m.`data` is null)
        or verdict = 'row update' and (m.`data` is null or m.`key` is null)
        or verdict = 'row delete' and (m.`data` is null) then named_struct('texts', from_json(coalesce(marked, quoted), 'struct< `data` string, `key` string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))) end as reread
    from classified
  )
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select
    origin, arrival, raw, verdict, found_before, found_after,
    named_struct(
      'meta', named_struct(
        'op', m.`meta`.`op`,
        'table', m.`meta`.`table`,
        'trans', m.`meta`.`trans`,
        'time', m.`meta`.`time`,
        'posttime', m.`meta`.`posttime`,
        'scn', m.`meta`.`scn`,
        'rowid', m.`meta`.`rowid`,
        'idx', m.`meta`.`idx`,
        'seq', m.`meta`.`seq`),
      'sql', named_struct(
        'ddl', m.`sql`.`ddl`)) as m,
    case
      when parse_error is not null then parse_error
      when verdict is null and m.`meta`.`op` is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      when reread is not null and case verdict
        when 'row insert' then reread.texts.`data` is not null and m.`data` is null
        when 'row update' then reread.texts.`data` is not null and m.`data` is null or reread.texts.`key` is not null and m.`key` is null
        when 'row delete' then reread.texts.`data` is not null and m.`data` is null end then 'row-not-an-object'
      when not coalesce(size(if(verdict = 'row delete', found_before, found_after)) > 0 or verdict = 'row update' and found_after is not null and size(found_before) > 0, false) then if(nullif(m.`sql`.`ddl`, '') is not null, 'statement-without-rows', 'no-row-image')
    end as reason,
    cast(null as array<string>) as key_names,
    cast(null as map<string,string>) as types
  from message_images
),

-- One row for each row change; every other message stays one row.
exploded as (
  select
    origin, arrival, m, verdict, reason, key_names, types,
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, case
      when split_part(verdict, ' ', 2) = 'by_statement' then case
      when nullif(m.`sql`.`ddl`, '') rlike '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+(?:create|drop)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++(?:(?:or(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract(nullif(m.`sql`.`ddl`, ''), '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+([a-z]++)', 1))), 'other') end
      else split_part(verdict, ' ', 2) end, null) as op,
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
    if(verdict = 'row update' and sent_before is not null, map_concat(sent_before, sent_after), sent_after) as after
  from clean_images
),

-- The key columns, looked up in the images; null if one of them is missing.  [key]
keyed as (
  select
    *,
    case
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
    if(cast(unix_seconds(if(m.`meta`.`time` rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?$', timestamp_micros(unix_micros(try_cast(m.`meta`.`time` as timestamp)) - 28800000000), null)) as string) rlike '^-?[0-9]{1,38}$', try_cast(cast(unix_seconds(if(m.`meta`.`time` rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?$', timestamp_micros(unix_micros(try_cast(m.`meta`.`time` as timestamp)) - 28800000000), null)) as string) as decimal(38,0)), null) as order_1,
    if(m.`meta`.`scn` rlike '^-?[0-9]{1,38}$', try_cast(m.`meta`.`scn` as decimal(38,0)), null) as order_2,
    map(
      'rowid', nullif(nullif(regexp_extract(if(startswith(m.`meta`.`rowid`, m.`meta`.`table`), substr(m.`meta`.`rowid`, length(m.`meta`.`table`) + 1), null), '^(?s)\\-(.*)$', 1), ''), ''),
      'transaction_position', coalesce(nullif(m.`meta`.`idx`, ''), nullif(m.`meta`.`seq`, '')),
      'raw_encoding', if(reason = 'not-utf8', 'base64', null)) as meta_entries
  from keyed
)

-- The columns of the contract, in its order.
select
  kind,
  'oms_shareplex' as source,
  'oms_shareplex' as format,
  op,
  cast(null as string) as tenant,
  nullif(nullif(regexp_extract(m.`meta`.`table`, '^(?s)(.*?)\\..*$', 1), ''), '') as db_name,
  cast(null as string) as schema_name,
  nullif(nullif(regexp_extract(m.`meta`.`table`, '^(?s)(?:.*?\\.)?(.*)$', 1), ''), '') as table_name,
  key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  if(size(key) > 1, to_json(map_from_entries(array_sort(map_entries(key)))), to_json(key)) as key_text,
  before,
  after,
  case when kind <> 'row' then null when before is null then 'none' when not map_keys(before) = map_keys(after) and exists(map_keys(after), c -> not map_contains_key(before, c)) then 'partial' else 'full' end as before_image,
  case when kind <> 'row' then null when after is null then 'none' when verdict = 'row update' and before is null then 'partial' else 'full' end as after_image,
  case when op = 'update' and before is not null and after is not null then
      sort_array(filter(map_keys(sent_after), c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c)))) end as changed,
  if(kind = 'row', types, null) as types,
  if(m.`meta`.`time` rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?$', timestamp_micros(unix_micros(try_cast(m.`meta`.`time` as timestamp)) - 28800000000), null) as event_time,
  if(m.`meta`.`posttime` rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?$', timestamp_micros(unix_micros(try_cast(m.`meta`.`posttime` as timestamp)) - 28800000000), null) as produced_at,
  nullif(m.`meta`.`trans`, '') as tx_id,
  named_struct(
    'generation', 0,
    'phase', 1,
    'position', case when length(m.`meta`.`scn`) > 38 and m.`meta`.`scn` rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when order_1 is null then cast(array() as array<decimal(38,0)>) when order_2 is null then array(order_1) else array(order_1, order_2) end,
    'arrival', arrival,
    'row', row_index) as seq,
  cast(null as string) as pair_id,
  map_filter(meta_entries, (entry, value) -> value not in ('', 'null')) as meta,
  origin,
  case when kind = 'ddl' then nullif(m.`sql`.`ddl`, '') end as statement,
  reason,
  case reason
    when 'no-op' then 'meta.op: missing'
    when 'unknown-op' then concat('meta.op: "', m.`meta`.`op`, '"')
    when 'no-row-image' then concat('meta.op: "', m.`meta`.`op`, '", without a row')
    when 'statement-without-rows' then concat('meta.op: "', m.`meta`.`op`, '", without a row; statement: ', m.`sql`.`ddl`)
    when 'row-not-an-object' then concat('meta.op: "', m.`meta`.`op`, '", with a row that is null or no object')
    when 'uneven-rows' then concat('meta.op: "', m.`meta`.`op`, '", with more rows before the change than after it')
    when 'unknown-patch' then concat('meta.op: "', m.`meta`.`op`, '", with an update operator that is not known')
  end as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from meta_and_order
