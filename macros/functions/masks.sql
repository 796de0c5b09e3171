-- Values that nobody may see: what stands in their place, and texts that only who has the secret can read.
{%- set type_of_origin -%} {{ contract.origin }} {%- endset %}
{%- set type_of_keys -%} struct<hash_inner binary, hash_outer binary, seal binary, seal_before binary> {%- endset %}
{%- set comment_of_keys -%} comment 'the keys that are made of the secret' {%- endset %}
{%- macro hash(bytes) -%} sha2(concat(mask_keys.hash_outer, unhex(sha2(concat(mask_keys.hash_inner, {{ bytes }}), 256))), 256) {%- endmacro %}
{%- macro opened_again(sealed) -%} coalesce(cast({{ unsealed(sealed) }} as string), {{ sealed }}) {%- endmacro %}
{%- macro sealed(bytes) -%}
base64(concat({{ seal_begins() }}, aes_encrypt({{ bytes }}, mask_keys.seal, 'GCM', 'DEFAULT', left(unhex({{ hash(bytes) }}), 12))))
{%- endmacro %}
{%- set quoted -%} '(?:[^'\\]|''|\\.)*+(?:'|\z) {%- endset %}
{%- set in_double -%} "(?:[^"\\]|""|\\.)*+(?:"|\z) {%- endset %}
{%- set in_dollars -%} (?<![\w$])\$(?<tag>\w*)\$.*?(?:\$\k<tag>\$|\z) {%- endset %}
{#- Of a patch, a column may be a part of a document, with dots in its name. -#}
{%- set mask -%} coalesce(masks[lower(c)], masks[lower(substring_index(c, '.', 1))], masks['*'], 'none') {%- endset %}
{%- set number -%} cast(substring_index({{ mask }}, ' ', -1) as int) {%- endset %}

create function masked_columns(
  columns map<string,string> comment 'columns with their values',
  masks map<string,string> comment 'what becomes of each column, by its name in lower case, and under * what becomes of all others: none (it stays), drop, null, hmac, last and a number, first and a number, keep domain, or function and its name (the value is in given)',
  given map<string,string> comment 'the values of columns that a function of the project has masked, by names in lower case',
  mask_keys {{ type_of_keys }} {{ comment_of_keys }})
returns map<string,string>
comment 'The columns with what stands in place of their values. A part of a document has the mask of the document. What is null stays null. The hash is HMAC-SHA256, in hexadecimal digits.'
return transform_values(map_filter(columns, (c, v) -> {{ mask }} <> 'drop'), (c, v) -> case
  when v is null or {{ mask }} = 'none' then v
  when {{ mask }} = 'hmac' then {{ hash('cast(v as binary)') }}
  when {{ mask }} like 'last %' then if(length(v) > {{ number }}, concat('***', right(v, {{ number }})), '***')
  when {{ mask }} like 'first %' then if(length(v) > {{ number }}, concat(left(v, {{ number }}), '***'), '***')
  when {{ mask }} = 'keep domain' then if(contains(v, '@'), concat('***@', substring_index(v, '@', -1)), '***')
  when {{ mask }} like 'function %' then given[lower(c)] end);

create function masks_of_key(
  masks map<string,string> comment 'what becomes of each column')
returns map<string,string>
comment 'What becomes of columns in a key: each that is masked is hashed, so that different keys stay different.'
return transform_values(masks, (c, m) -> if(m = 'none', m, 'hmac'));

create function masked_types(
  types map<string,string> comment 'columns with their types',
  masks map<string,string> comment 'what becomes of each column')
returns map<string,string>
comment 'The types of the columns that are there.'
return map_filter(types, (c, v) -> {{ mask }} <> 'drop');

create function masked_names(
  names array<string> comment 'names of columns',
  masks map<string,string> comment 'what becomes of each column')
returns array<string>
comment 'The names of the columns that are there.'
return filter(names, c -> {{ mask }} <> 'drop');

create function is_masked_key(
  key map<string,string> comment 'the columns of a key, or null',
  masks map<string,string> comment 'what becomes of each column')
returns boolean
comment 'Whether a column of a key is masked, or may be.'
return key is null or exists(map_keys(key), c -> {{ mask }} <> 'none');

create function statement_without_texts(
  statement string comment 'a statement')
returns string
comment 'The statement without comments, with *** in place of texts. What stands between double quotes is a text behind a default, a comment, values or an equals sign; elsewhere it is a name.'
return regexp_replace(
  regexp_replace(
    regexp_replace(
      regexp_replace(statement,
        {{ text("(?s)(" ~ quoted ~ "|" ~ in_double ~ "|" ~ in_dollars ~ "|/\\*!)|/\\*.*?(?:\\*/|\\z)|--[^\\n]*") }}, '$1'),
      {{ text("(?s)\\G((?:[^'\"$]++|" ~ quoted ~ "|" ~ in_double ~ "|(?<=[\\w$])\\$|\\$(?!\\w*\\$))*+)" ~ in_dollars) }}, '$1\'***\''),
    {{ text("(?s)\\G((?:[^'\"]++|" ~ in_double ~ ")*+)" ~ quoted) }}, '$1\'***\''),
  {{ text("(?is)(\\b(?:default|comment|values?)\\b[\\s(]*+|=\\s*+)" ~ in_double) }}, '$1"***"');

create function statement_without_values(
  statement string comment 'a statement',
  op string comment 'what it does')
returns string
comment 'The statement without comments, with *** in place of texts; without numbers, and with *** in place of all that stands between double quotes, if it is about something else than a table.'
return if(op = 'other',
  regexp_replace(
    regexp_replace(statement_without_texts(statement), {{ text("(?s)" ~ in_double) }}, '"***"'),
    '\\b[0-9][0-9.]*+', '0'),
  statement_without_texts(statement));

create function sealed_text(
  bytes binary comment 'a text, or null',
  mask_keys {{ type_of_keys }} {{ comment_of_keys }})
returns string
comment 'The text as only who has the secret can read it, in base64: AES-256-GCM, for the same text the same.'
return {{ sealed('bytes') }};

create function opened_text(
  sealed string comment 'a text that may be sealed',
  mask_keys {{ type_of_keys }} {{ comment_of_keys }})
returns binary
comment 'The text that was sealed; null if it was not, or not with this secret or the one before it.'
return {{ unsealed('sealed') }};

create function sealed_origin(
  origin {{ type_of_origin }} comment 'where a message lies',
  mask_keys {{ type_of_keys }} {{ comment_of_keys }})
returns {{ type_of_origin }}
comment 'The place, with the key of its record and the values of its headers sealed.'
return if(origin is null, null, struct(origin.topic, origin.partition, origin.offset, origin.timestamp,
  {{ sealed('cast(origin.key as binary)') }} as key,
  transform(origin.headers, h -> struct(h.key as key, {{ sealed('cast(h.value as binary)') }} as value)) as headers,
  origin.file, origin.block));

create function opened_origin(
  origin {{ type_of_origin }} comment 'where a message lies',
  mask_keys {{ type_of_keys }} {{ comment_of_keys }})
returns {{ type_of_origin }}
comment 'The place, with the key of its record and the values of its headers as they came.'
return if(origin is null, null, struct(origin.topic, origin.partition, origin.offset, origin.timestamp,
  {{ opened_again('origin.key') }} as key,
  transform(origin.headers, h -> struct(h.key as key, {{ opened_again('h.value') }} as value)) as headers,
  origin.file, origin.block));
