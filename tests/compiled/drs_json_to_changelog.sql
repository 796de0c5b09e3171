-- drs_json_to_changelog: the messages of source drs_json, as rows of the changelog
-- format     drs_json: Huawei DRS to Kafka, "JSON", from MySQL and TaurusDB
-- reads      drs_json_messages: raw string, origin struct, arrival array
-- functions  Spark's own, and java_bytes of runner/functions
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
  from `drs_json_messages`
),

-- The fields that the format names. A seal follows the document: if it is in its place, there is nothing else in the message.
decoded as (
  select
    *,
    from_json(
      concat('[', quoted, ',{"seal":"', xxhash64(raw), '"}]'),
      'array<struct<
        `type` string,
        `database` string,
        `table` string,
        `sql` string,
        `es` string,
        `ts` string,
        `id` string,
        `isDdl` string,
        `data` array<map<string,string>>,
        `old` array<map<string,string>>,
        `pkNames` array<string>,
        `mysqlType` map<string,string>,
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
        `type` string,
        `database` string,
        `table` string,
        `sql` string,
        `es` string,
        `ts` string,
        `id` string,
        `isDdl` string,
        `data` array<map<string,string>>,
        `old` array<map<string,string>>,
        `pkNames` array<string>,
        `mysqlType` map<string,string>,
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
          coalesce(startswith(get(documents, 0).`type`, '{') or startswith(get(documents, 0).`type`, '['), false)
          or coalesce(startswith(get(documents, 0).`database`, '{') or startswith(get(documents, 0).`database`, '['), false)
          or coalesce(startswith(get(documents, 0).`table`, '{') or startswith(get(documents, 0).`table`, '['), false)
          or coalesce(startswith(get(documents, 0).`sql`, '{') or startswith(get(documents, 0).`sql`, '['), false)
          or coalesce(startswith(get(documents, 0).`es`, '{') or startswith(get(documents, 0).`es`, '['), false)
          or coalesce(startswith(get(documents, 0).`ts`, '{') or startswith(get(documents, 0).`ts`, '['), false)
          or coalesce(startswith(get(documents, 0).`id`, '{') or startswith(get(documents, 0).`id`, '['), false)
          or coalesce(startswith(get(documents, 0).`isDdl`, '{') or startswith(get(documents, 0).`isDdl`, '['), false)
          or coalesce(exists(get(documents, 0).`data`, r -> exists(map_values(r), v -> startswith(v, '{') or startswith(v, '['))), false)
          or coalesce(exists(get(documents, 0).`old`, r -> exists(map_values(r), v -> startswith(v, '{') or startswith(v, '['))), false)
          or coalesce(exists(get(documents, 0).`pkNames`, v -> startswith(v, '{') or startswith(v, '[')), false)
          or coalesce(exists(map_values(get(documents, 0).`mysqlType`), v -> startswith(v, '{') or startswith(v, '[')), false)) and raw rlike '[.eE\\-][-+0-9eE]++\\s*+[,}\\]]' then regexp_replace(
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
        'type', if(startswith(get(marked_documents, 0).`type`, '\uFFFF'), substr(get(marked_documents, 0).`type`, 2), regexp_replace(get(marked_documents, 0).`type`, '"\uFFFF([^"]*+)"', '$1')),
        'database', if(startswith(get(marked_documents, 0).`database`, '\uFFFF'), substr(get(marked_documents, 0).`database`, 2), regexp_replace(get(marked_documents, 0).`database`, '"\uFFFF([^"]*+)"', '$1')),
        'table', if(startswith(get(marked_documents, 0).`table`, '\uFFFF'), substr(get(marked_documents, 0).`table`, 2), regexp_replace(get(marked_documents, 0).`table`, '"\uFFFF([^"]*+)"', '$1')),
        'sql', if(startswith(get(marked_documents, 0).`sql`, '\uFFFF'), substr(get(marked_documents, 0).`sql`, 2), regexp_replace(get(marked_documents, 0).`sql`, '"\uFFFF([^"]*+)"', '$1')),
        'es', if(startswith(get(marked_documents, 0).`es`, '\uFFFF'), substr(get(marked_documents, 0).`es`, 2), regexp_replace(get(marked_documents, 0).`es`, '"\uFFFF([^"]*+)"', '$1')),
        'ts', if(startswith(get(marked_documents, 0).`ts`, '\uFFFF'), substr(get(marked_documents, 0).`ts`, 2), regexp_replace(get(marked_documents, 0).`ts`, '"\uFFFF([^"]*+)"', '$1')),
        'id', if(startswith(get(marked_documents, 0).`id`, '\uFFFF'), substr(get(marked_documents, 0).`id`, 2), regexp_replace(get(marked_documents, 0).`id`, '"\uFFFF([^"]*+)"', '$1')),
        'isDdl', if(startswith(get(marked_documents, 0).`isDdl`, '\uFFFF'), substr(get(marked_documents, 0).`isDdl`, 2), regexp_replace(get(marked_documents, 0).`isDdl`, '"\uFFFF([^"]*+)"', '$1')),
        'data', transform(get(marked_documents, 0).`data`, r -> transform_values(r, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1')))),
        'old', transform(get(marked_documents, 0).`old`, r -> transform_values(r, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1')))),
        'pkNames', transform(get(marked_documents, 0).`pkNames`, v -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))),
        'mysqlType', transform_values(get(marked_documents, 0).`mysqlType`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))),
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
      when m.`isDdl` = 'true' and m.`type` in ('INSERT', 'UPDATE', 'DELETE', 'INIT', 'ROW', 'XACOMMIT', 'XAROLLBACK', 'MHEARTBEAT', 'GTID') then 'ddl by_statement'
      when m.`type` = 'INSERT' then 'row insert'
      when m.`type` = 'UPDATE' then 'row update'
      when m.`type` = 'DELETE' then 'row delete'
      when m.`type` = 'INIT' then 'row snapshot'
      when m.`type` = 'ROW' then 'row snapshot'
      when m.`type` = 'CREATE' then 'ddl create'
      when m.`type` = 'ALTER' then 'ddl alter'
      when m.`type` = 'ERASE' then 'ddl drop'
      when m.`type` = 'TRUNCATE' then 'ddl truncate'
      when m.`type` = 'RENAME' then 'ddl rename'
      when m.`type` = 'CINDEX' then 'ddl index'
      when m.`type` = 'DINDEX' then 'ddl index'
      when m.`type` = 'QUERY' then 'ddl by_statement'
      when m.`type` = 'XACOMMIT' then 'control commit'
      when m.`type` = 'XAROLLBACK' then 'control rollback'
      when m.`type` = 'MHEARTBEAT' then 'control heartbeat'
      when m.`type` = 'GTID' then 'control other'
      when m.`type` = 'INIT_DDL' then 'ddl by_statement 2'
      when m.`type` = 'DDL' then 'ddl by_statement'
      when m.`type` is null and m.`isDdl` = 'true' then 'ddl by_statement'
      when m.`type` is not null and m.`isDdl` = 'true' then 'ddl by_statement'
    end as verdict
  from parsed
),

-- The rows of each row change, and the rows before an update.  [each, before, after]
row_lists as (
  select
    *,
    case verdict
      when 'row insert' then coalesce(m.`data`, array_compact(array(reread.objects.`data`)))
      when 'row update' then coalesce(m.`data`, array_compact(array(reread.objects.`data`)))
      when 'row delete' then case when exists(coalesce(m.`old`, array_compact(array(reread.objects.`old`))), r -> size(r) > 0) then coalesce(m.`old`, array_compact(array(reread.objects.`old`))) else coalesce(m.`data`, array_compact(array(reread.objects.`data`))) end
      when 'row snapshot' then coalesce(m.`data`, array_compact(array(reread.objects.`data`))) end as rows,
    coalesce(case verdict
      when 'row update' then coalesce(m.`old`, array_compact(array(reread.objects.`old`))) end, array()) as rows_before
  from (
    -- A bare object counts as a list of one. Only row changes without the usual lists need this second reading.
    select
      *,
      case when verdict = 'row insert' and not (coalesce(size(m.`data`) > 0 and forall(m.`data`, r -> size(r) > 0), false))
        or verdict = 'row update' and not (coalesce(size(m.`data`) > 0 and forall(m.`data`, r -> size(r) > 0) and size(m.`old`) > 0 and forall(m.`old`, r -> r is not null), false))
        or verdict = 'row delete' and not (coalesce(size(m.`old`) > 0 and forall(m.`old`, r -> size(r) > 0), false))
        or verdict = 'row snapshot' and not (coalesce(size(m.`data`) > 0 and forall(m.`data`, r -> size(r) > 0), false)) then named_struct(
        'objects', get(transform(
          array(from_json(regexp_replace(
      regexp_replace(
        raw,
        '(?s)\\G((?:[^\\\\]++|\\\\[^u]|\\\\u(?![dD][89a-fA-F])|\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)\\\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
        '$1\\\\ufffd'),
      '(?s)\\G((?:[^"\\-0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!-0(?![0-9.eE]))-?[0-9]++(?![0-9.eE])|-(?![0-9]))*+)(-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++(?:[eE][+\\-]?[0-9]++)?|[eE][+\\-]?[0-9]++)(?![0-9.eE+\\-])|-0(?![0-9.eE]))',
      '$1"\uFFFF$2"'), 'struct< `data` map<string,string>, `old` map<string,string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))),
          reread -> if(reread is null, null, named_struct(
            'data', transform_values(reread.`data`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1'))),
            'old', transform_values(reread.`old`, (c, v) -> if(startswith(v, '\uFFFF'), substr(v, 2), regexp_replace(v, '"\uFFFF([^"]*+)"', '$1')))))), 0),
        'lists', from_json(coalesce(marked, quoted), 'struct< `data` array<string>, `old` array<string>>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647')),
        'texts', from_json(coalesce(marked, quoted), 'struct< `data` string, `old` string>', map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'))) end as reread
    from classified
  )
),

-- Why a message cannot be used. One bad row is enough to refuse the whole message: no message lands in part.
checked as (
  select
    origin, arrival, raw, verdict, rows, rows_before,
    named_struct(
      'type', m.`type`,
      'database', m.`database`,
      'table', m.`table`,
      'sql', m.`sql`,
      'es', m.`es`,
      'ts', m.`ts`,
      'id', m.`id`,
      'isDdl', m.`isDdl`) as m,
    case
      when parse_error is not null then parse_error
      when verdict is null and m.`type` is null then 'no-op'
      when verdict is null then 'unknown-op'
      when verdict not like 'row %' then null
      when reread is not null and case verdict
        when 'row insert' then (reread.texts.`data` is not null and reread.objects.`data` is null and m.`data` is null or coalesce(exists(m.`data`, r -> r is null), false))
        when 'row update' then (reread.texts.`data` is not null and reread.objects.`data` is null and m.`data` is null or coalesce(exists(m.`data`, r -> r is null), false))
        when 'row delete' then (reread.texts.`old` is not null and reread.objects.`old` is null and m.`old` is null or coalesce(exists(m.`old`, r -> r is null), false)) or not coalesce(exists(coalesce(m.`old`, array_compact(array(reread.objects.`old`))), r -> size(r) > 0), false) and ((reread.texts.`data` is not null and reread.objects.`data` is null and m.`data` is null or coalesce(exists(m.`data`, r -> r is null), false)))
        when 'row snapshot' then (reread.texts.`data` is not null and reread.objects.`data` is null and m.`data` is null or coalesce(exists(m.`data`, r -> r is null), false)) end then 'row-not-an-object'
      when not coalesce(exists(rows, r -> size(r) > 0), false) then if(nullif(m.`sql`, '') is not null, 'statement-without-rows', 'no-row-image')
      when reread is not null and verdict = 'row update' and (reread.texts.`old` is not null and reread.objects.`old` is null and m.`old` is null
        or array_contains(transform(reread.lists.`old`, (r, i) -> r is not null and get(m.`old`, i) is null), true)) then 'row-not-an-object'
      when size(rows_before) > size(rows) then 'uneven-rows'
    end as reason,
    array_except(m.`pkNames`, array(cast(null as string), '__#alibaba_rds_row_id#__', '#alibaba_rds_row_id#')) as key_names,
    if(size(array_distinct(map_keys(m.`mysqlType`))) < size(m.`mysqlType`) or map_contains_key(m.`mysqlType`, '__#alibaba_rds_row_id#__') or map_contains_key(m.`mysqlType`, '#alibaba_rds_row_id#'),
      map_filter(map_from_entries(map_entries(m.`mysqlType`)), (c, v) -> not (c in ('__#alibaba_rds_row_id#__', '#alibaba_rds_row_id#'))), m.`mysqlType`) as types
  from row_lists
),

-- The columns whose text as sent may not be canonical, and the reader of each.  [types.table, values]
column_readers as (
  select
    *,
    transform(
      filter(map_entries(types), t -> substring_index(substring_index(lower(t.value), '(', 1), ' ', 1) in (
        'decimal', 'numeric', 'fixed', 'dec', 'binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection', 'geomcollection', 'time', 'datetime', 'timestamp')),
      t -> struct(
        t.key as column,
        case
          when substring_index(substring_index(lower(t.value), '(', 1), ' ', 1) in ('decimal', 'numeric', 'fixed', 'dec') then 'decimal'
          when substring_index(substring_index(lower(t.value), '(', 1), ' ', 1) in ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring', 'multipolygon', 'geometrycollection', 'geomcollection') then 'java_bytes'
          when substring_index(substring_index(lower(t.value), '(', 1), ' ', 1) in ('time', 'datetime') then 'wall_clock'
          when substring_index(substring_index(lower(t.value), '(', 1), ' ', 1) in ('timestamp') then 'epoch_s' end as reader)) as readers
  from checked
),

-- One row for each row change; every other message stays one row.
exploded as (
  select
    origin, arrival, m, verdict, reason, key_names, types, readers,
    if(reason is null, null, raw) as raw,
    if(reason is null, split_part(verdict, ' ', 1), 'dead_letter') as kind,
    if(reason is null, case
      when split_part(verdict, ' ', 2) = 'by_statement' then case
      when nullif(m.`sql`, '') rlike '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+(?:create|drop)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++(?:(?:or(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore)(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract(nullif(m.`sql`, ''), '(?is)^(?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$))*+([a-z]++)', 1))), 'other') end
      else split_part(verdict, ' ', 2) end, null) as op,
    coalesce(position, 0) as row_index,
    case when verdict = 'row delete' then row.rows when verdict = 'row update' then row.rows_before end as sent_before,
    case when verdict in ('row insert', 'row update', 'row snapshot') then row.rows end as sent_after
  from column_readers
  lateral view outer posexplode(if(reason is null, arrays_zip(rows, rows_before), null)) as position, row
),

-- The images as sent: of equal names the last counts, and members that are not columns are left out.  [drop]
clean_images as (
  select
    * except (sent_before, sent_after),
    coalesce(sent_after['__#alibaba_rds_row_id#__'], sent_before['__#alibaba_rds_row_id#__'], sent_after['#alibaba_rds_row_id#'], sent_before['#alibaba_rds_row_id#']) as `meta_rowid`,
    if(map_keys(sent_before) = map_keys(types), sent_before, if(size(array_distinct(map_keys(sent_before))) < size(sent_before) or map_contains_key(sent_before, '__#alibaba_rds_row_id#__') or map_contains_key(sent_before, '#alibaba_rds_row_id#'),
      map_filter(map_from_entries(map_entries(sent_before)), (c, v) -> not (c in ('__#alibaba_rds_row_id#__', '#alibaba_rds_row_id#'))), sent_before)) as sent_before,
    if(map_keys(sent_after) = map_keys(types), sent_after, if(size(array_distinct(map_keys(sent_after))) < size(sent_after) or map_contains_key(sent_after, '__#alibaba_rds_row_id#__') or map_contains_key(sent_after, '#alibaba_rds_row_id#'),
      map_filter(map_from_entries(map_entries(sent_after)), (c, v) -> not (c in ('__#alibaba_rds_row_id#__', '#alibaba_rds_row_id#'))), sent_after)) as sent_after
  from exploded
),

-- The values that only a function over a whole image can read.  [values]
python_read as (
  select
    *,
    java_bytes(if(exists(readers, r -> r.reader = 'java_bytes'), map_from_entries(transform(filter(readers, r -> r.reader = 'java_bytes'), r -> struct(r.column, sent_before[r.column]))), null)) as java_bytes_before,
    java_bytes(if(exists(readers, r -> r.reader = 'java_bytes'), map_from_entries(transform(filter(readers, r -> r.reader = 'java_bytes'), r -> struct(r.column, sent_after[r.column]))), null)) as java_bytes_after
  from clean_images
),

-- The values whose canonical text is not the text sent, before and after; the text is null where it could not be read.  [values]
new_texts as (
  select
    *,
    if(coalesce(size(readers), 0) = 0, null, array(
      get(transform(array(named_struct('java_bytes', java_bytes_before)), results -> filter(
        transform(
          transform(readers, r -> struct(r.column, r.reader, sent_before[r.column] as sent, results.java_bytes[r.column] as java_bytes)),
          v -> struct(v.column, v.sent, case v.reader
            when 'decimal' then if(v.sent rlike '^[+-]?(?:[0-9]++(?:\\.[0-9]*+)?|\\.[0-9]++)$', v.sent, if(v.sent rlike '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$' and abs(try_cast(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 4) as int)) <= 10000,
            get(transform(
              array(named_struct(
                'sign', replace(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 1), '+', ''),
                'digits', concat(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 2), regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 3)),
                'dot', length(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 2)) + try_cast(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 4) as int))),
              n -> regexp_replace(concat(n.sign, case
                when n.dot <= 0 then concat('0.', repeat('0', -n.dot), n.digits)
                when n.dot >= length(n.digits) then concat(n.digits, repeat('0', n.dot - length(n.digits)))
                else concat(left(n.digits, n.dot), '.', substr(n.digits, n.dot + 1)) end), '^(-?)0+(?=[0-9])', '$1')), 0), null))
            when 'java_bytes' then v.java_bytes
            when 'wall_clock' then if(v.sent rlike '^(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}|-?[0-9]++):[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?$', if(contains(v.sent, '.'), rtrim('.', rtrim('0', v.sent)), v.sent), null)
            when 'epoch_s' then if(v.sent rlike '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(v.sent as decimal(23,9)) >= -62135596800 and try_cast(v.sent as decimal(23,9)) < 253402300800,
            concat(replace(cast(timestamp_seconds(cast(floor(try_cast(v.sent as decimal(23,9))) as bigint)) as string), ' ', 'T'),
              rtrim('.', rtrim('0', substr(cast(try_cast(v.sent as decimal(23,9)) - floor(try_cast(v.sent as decimal(23,9))) as string), 2))), 'Z'), null) end as text)),
        v -> not v.text <=> v.sent)), 0),
      get(transform(array(named_struct('java_bytes', java_bytes_after)), results -> filter(
        transform(
          transform(readers, r -> struct(r.column, r.reader, sent_after[r.column] as sent, results.java_bytes[r.column] as java_bytes)),
          v -> struct(v.column, v.sent, case v.reader
            when 'decimal' then if(v.sent rlike '^[+-]?(?:[0-9]++(?:\\.[0-9]*+)?|\\.[0-9]++)$', v.sent, if(v.sent rlike '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$' and abs(try_cast(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 4) as int)) <= 10000,
            get(transform(
              array(named_struct(
                'sign', replace(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 1), '+', ''),
                'digits', concat(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 2), regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 3)),
                'dot', length(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 2)) + try_cast(regexp_extract(v.sent, '^([+-]?)([0-9]++)(?:\\.([0-9]*+))?[eE]([+-]?[0-9]{1,5})$', 4) as int))),
              n -> regexp_replace(concat(n.sign, case
                when n.dot <= 0 then concat('0.', repeat('0', -n.dot), n.digits)
                when n.dot >= length(n.digits) then concat(n.digits, repeat('0', n.dot - length(n.digits)))
                else concat(left(n.digits, n.dot), '.', substr(n.digits, n.dot + 1)) end), '^(-?)0+(?=[0-9])', '$1')), 0), null))
            when 'java_bytes' then v.java_bytes
            when 'wall_clock' then if(v.sent rlike '^(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}|-?[0-9]++):[0-9]{2}:[0-9]{2}(?:\\.[0-9]++)?$', if(contains(v.sent, '.'), rtrim('.', rtrim('0', v.sent)), v.sent), null)
            when 'epoch_s' then if(v.sent rlike '^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?$' and try_cast(v.sent as decimal(23,9)) >= -62135596800 and try_cast(v.sent as decimal(23,9)) < 253402300800,
            concat(replace(cast(timestamp_seconds(cast(floor(try_cast(v.sent as decimal(23,9))) as bigint)) as string), ' ', 'T'),
              rtrim('.', rtrim('0', substr(cast(try_cast(v.sent as decimal(23,9)) - floor(try_cast(v.sent as decimal(23,9))) as string), 2))), 'Z'), null) end as text)),
        v -> not v.text <=> v.sent)), 0))) as new_texts
  from python_read
),

-- The images in canonical text.
canonical as (
  select
    *,
    if(coalesce(size(new_texts[0]), 0) = 0, sent_before,
      map_concat(sent_before, map_from_entries(transform(new_texts[0], v -> struct(v.column, coalesce(v.text, v.sent)))))) as canonical_before,
    if(coalesce(size(new_texts[1]), 0) = 0, sent_after,
      map_concat(sent_after, map_from_entries(transform(new_texts[1], v -> struct(v.column, coalesce(v.text, v.sent)))))) as canonical_after
  from new_texts
),

-- Both images. One that holds only some columns is laid over the other.  [before.over, after.over]
images as (
  select
    *,
    if(size(canonical_before) > 0, canonical_before, null) as before,
    canonical_after as after
  from canonical
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
    if(m.`id` rlike '^-?[0-9]{1,38}$', try_cast(m.`id` as decimal(38,0)), null) as order_1,
    map(
      'message_id', nullif(m.`id`, ''),
      'rowid', `meta_rowid`,
      'key_columns', if(kind = 'row' and key is null, array_join(key_names, ','), null),
      'as_sent', array_join(sort_array(array_distinct(transform(filter(flatten(new_texts), v -> v.text is null), v -> v.column))), ','),
      'raw_encoding', if(reason = 'not-utf8', 'base64', null)) as meta_entries
  from keyed
)

-- The columns of the contract, in its order.
select
  kind,
  'drs_json' as source,
  'drs_json' as format,
  op,
  cast(null as string) as tenant,
  nullif(m.`database`, '') as db_name,
  cast(null as string) as schema_name,
  nullif(m.`table`, '') as table_name,
  key,
  if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) as old_key,
  if(size(key) > 1, to_json(map_from_entries(array_sort(map_entries(key)))), to_json(key)) as key_text,
  before,
  after,
  case when kind <> 'row' then null when before is null then 'none' when not map_keys(before) = map_keys(after) and exists(map_keys(after), c -> not map_contains_key(before, c)) then 'partial' else 'full' end as before_image,
  case when kind <> 'row' then null when after is null then 'none' else 'full' end as after_image,
  case when op = 'update' and before is not null and after is not null then
      if(map_keys(before) = map_keys(after),
        sort_array(filter(map_keys(after), (c, i) -> not get(map_values(before), i) <=> get(map_values(after), i))),
        sort_array(filter(array_union(map_keys(before), map_keys(after)), c -> not (before[c] <=> after[c] and map_contains_key(before, c) = map_contains_key(after, c))))) end as changed,
  if(kind = 'row', types, null) as types,
  timestamp_millis(if(m.`es` rlike '^[0-9]{1,15}$' and try_cast(m.`es` as bigint) <= 253402300799999 and not m.`es` = '0', try_cast(m.`es` as bigint), null)) as event_time,
  timestamp_millis(if(m.`ts` rlike '^[0-9]{1,15}$' and try_cast(m.`ts` as bigint) <= 253402300799999 and not m.`ts` = '0', try_cast(m.`ts` as bigint), null)) as produced_at,
  cast(null as string) as tx_id,
  named_struct(
    'generation', 0,
    'phase', if(reason is null and verdict in ('row snapshot', 'ddl by_statement 2'), 0, 1),
    'position', case when length(m.`id`) > 38 and m.`id` rlike '^-?[0-9]{39,}$' then cast(array() as array<decimal(38,0)>) when order_1 is null then cast(array() as array<decimal(38,0)>) else array(order_1) end,
    'arrival', arrival,
    'row', row_index) as seq,
  cast(null as string) as pair_id,
  map_filter(meta_entries, (entry, value) -> value not in ('', 'null')) as meta,
  origin,
  case when kind = 'ddl' then nullif(m.`sql`, '') end as statement,
  reason,
  case reason
    when 'no-op' then 'type: missing'
    when 'unknown-op' then concat('type: "', m.`type`, '"')
    when 'no-row-image' then concat('type: "', m.`type`, '", without a row')
    when 'statement-without-rows' then concat('type: "', m.`type`, '", without a row; statement: ', m.`sql`)
    when 'row-not-an-object' then concat('type: "', m.`type`, '", with a row that is null or no object')
    when 'uneven-rows' then concat('type: "', m.`type`, '", with more rows before the change than after it')
    when 'unknown-patch' then concat('type: "', m.`type`, '", with an update operator that is not known')
  end as detail,
  if(reason = 'not-utf8', base64(cast(raw as binary)), raw) as raw
from meta_and_order
