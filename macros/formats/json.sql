{#- Reading a message's text: exactly one JSON object, with the digits of its numbers as they were sent. Each macro prints one expression, or one
    function. -#}

{#- The messages in a message. -#}
{%- macro elements_of_batch(path, messages) -%}
(select *, json_elements(if(is_valid_utf8(raw), raw, null), {{ path }}) as elements from {{ messages }})
  lateral view outer posexplode(coalesce(elements, array(raw))) each as nth, element
{%- endmacro -%}

{%- macro events_of_frames(arguments, messages) -%}
(select *, framed_events(cast(raw as binary), origin.key, {{ arguments | join(', ') }}) as events from {{ messages }})
  lateral view posexplode(events) each as nth, event
{%- endmacro -%}

{%- macro reason_of_frames(reason) -%} if(damage is not null, 'bad-frames', {{ reason }}) {%- endmacro -%}

{#- A text in JSON, without the zero byte and the number of a schema before it. -#}
{%- macro without_number(json, bytes) -%} if(startswith({{ json }}, char(0)), cast(substring(cast({{ json }} as binary), {{ 2 + bytes }}) as string), {{ json }}) {%- endmacro -%}

{#- Where a number is no text, the key is in base64. -#}
{%- macro origin_without_number(bytes) -%}
named_struct('topic', origin.topic, 'partition', origin.partition, 'offset', origin.offset, 'timestamp', origin.timestamp,
      'key', {{ without_number("if(startswith(origin.key, 'AA') and " ~ is_base64('origin.key') ~ ', cast(unbase64(origin.key) as string), origin.key)', bytes) }},
      'headers', origin.headers, 'file', origin.file, 'block', origin.block)
{%- endmacro -%}

{%- macro sealed_document(json, fields, depth) -%}
from_json(sealed({{ json }}, xxhash64(raw)),
      '{{ field_type(fields, 8) | sql_inner }}',
      {{ json_options(depth) }})
{%- endmacro -%}

{%- macro read_messages(function) -%} (select *, {{ name(function) }}(document, raw) as message from decoded) {%- endmacro -%}


{#- Where paths start, with what came beside the message. -#}
{%- macro found_roots(columns) -%}
(select {{ columns | in_columns(6) }}
    from parsed)
{%- endmacro -%}

{%- macro root_with(beside) -%}
struct(found.*
    {%- for column, expression in beside.items() %},
      {{ expression }} as {{ column }}
    {%- endfor %})
{%- endmacro -%}

{%- macro at_path(column, path) -%} {{ column }}{{ member(path) }} {%- endmacro -%}

{%- macro struct_of(column, names) -%} struct({{ names | each('column_of', column) | join(', ') }}) {%- endmacro -%}

{%- macro key_as(fields) -%} from_json(origin.key, '{{ field_type(fields, 6) | sql_inner }}', {{ json_options() }}) {%- endmacro -%}

{%- macro key_as_row(roots) -%}
coalesce(object_of_key(exact_numbers(origin.key), {{ roots }}), object_of_key(origin.key, {{ roots }}))
{%- endmacro -%}

{%- macro headers_by_name() -%}
map_from_entries(transform(filter(origin.headers, h -> h.key is not null), h -> struct(h.key, h.value)))
{%- endmacro -%}


{#- What follows a document while it is read: in its place, it says that nothing else came with the document. -#}
{%- macro seal(raw) -%} cast(xxhash64({{ raw }}) as string) {%- endmacro -%}

{#- The pattern of a marked number: the mark, and around it the quotes that came with it into nested JSON. -#}
{%- macro marked_number(raw) -%} concat('"?\uFFFF', xxhash64({{ raw }}), ':([^"]*+)"?') {%- endmacro -%}

{%- macro json_options(depth=none) -%}
map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false', 'maxNumLen', '2147483647', 'maxStringLen', '2147483647'
{%- if depth %},
        'maxNestingDepth', '{{ depth }}'{% endif %})
{%- endmacro -%}

{#- Whether a value that is read is an object or a list where a text is expected. -#}
{%- macro or_false(test) -%} coalesce({{ test }}, false) {%- endmacro -%}
{%- macro is_nested(value) -%} startswith({{ value }}, '{') or startswith({{ value }}, '[') {%- endmacro -%}
{%- macro map_holds_nested(map) -%} exists(map_values({{ map }}), v -> {{ is_nested('v') }}) {%- endmacro -%}
{%- macro maps_hold_nested(maps) -%} exists({{ maps }}, r -> {{ map_holds_nested('r') }}) {%- endmacro -%}
{%- macro objects_hold_nested(objects, value) -%} exists({{ objects }}, o -> {{ is_nested('o.' ~ value) }}) {%- endmacro -%}
{%- macro list_holds_nested(path) -%} exists({{ at_path('document', path) }}, v -> v rlike {{ is_no_text_in_list() }}) {%- endmacro -%}

{#- What a value in a list has become that was a number with a fraction or an exponent, whose digits are lost, an object or a list. -#}
{%- macro is_no_text_in_list() -%} '^(?:-?[0-9]+[.eE]|-?Infinity|NaN|[{\\[])' {%- endmacro -%}

{#- The type of a tree of fields: several fields a line, and each object in lines of its own. -#}
{%- macro field_type(tree, indent) -%}
{%- if tree is string -%} {{ tree }} {%- else -%}
struct<{{ tree.items() | each('member_type', indent + 2) | in_lines(indent) }}>
{%- endif -%}
{%- endmacro -%}
{%- macro member_type(member, indent) -%} {{ name(member[0]) }} {{ inner_type(member[1], indent) }} {%- endmacro -%}

{%- macro inner_type(tree, indent) -%}
{%- set type = field_type(tree, indent) -%}
{%- set broken = type | replace('struct<', 'struct<\n' ~ ' ' * indent, 1) -%}
{{ type if type | length < 50 else broken if tree is not string or type | length < 130 else broken | replace(':array<struct<', ':array<struct<\n' ~ ' ' * (indent + 2), 1) | replace(':struct<', ':struct<\n' ~ ' ' * (indent + 4), 2) }}
{%- endmacro -%}


{#- Messages of unusual shape ------------------------------------------------------------------------------------------------------------ -#}

{#- The function of a source that reads a message field by field, unless all of them have the usual shape. Lambdas hold what is used more than once:
    Spark computes arguments for every message, but what is in a branch only where it is taken. -#}
{%- macro document_function(function, fields, usual, found, document) -%}
{%- set type = field_type(fields, 4) -%}
create function {{ name(function) }}(
  document {{ type }} comment 'what the parser made of the message',
  raw string comment 'the text of the message')
returns struct<document {{ type }}, misfits array<string>, reason string>
comment 'The document of a message, with the places of images that hold something else; or the reason why there is none.'
return if({{ usual | join(' or ') }}, named_struct('document', document, 'misfits', null, 'reason', null), get(transform(transform(
  array(marked(raw, concat('\uFFFF', xxhash64(raw), ':'), concat('\uFFFF', xxhash64(raw), ';'))),
  json -> struct(
    {{ why_not_one_object('raw', 'json') | indent(4) }} as reason,
    {{ marked_number('raw') }} as marked,
    concat('\uFFFF', xxhash64(raw), ';') as mark
    {%- for column, expression in found.items() %},
    {{ expression }} as {{ column }}
    {%- endfor %})),
  found -> named_struct(
    'document', if(found.reason is null, {{ document }}, null),
    'misfits', found.misfits,
    'reason', found.reason)), 0));
{% endmacro -%}

{#- Whether a message is one document in which each field has the usual shape. -#}
{%- macro is_usual(others) -%}
coalesce(document.`_seal` = {{ seal('raw') }} and document.`_corrupt_record` is null and is_valid_utf8(raw){% for one in others %} and {{ one }}{% endfor %}, false)
{%- endmacro -%}

{#- The reason why a text is not one object in JSON, which is read as `json`. -#}
{%- macro why_not_one_object(raw, json) -%}
case
  when {{ raw }} is null then null
  when not is_valid_utf8({{ raw }}) then 'not-utf8'
  when exists(
    array(from_json(concat('[', {{ json }}, ',{"seal":"', xxhash64({{ raw }}), '"}]'), 'array<map<string,string>>', {{ json_options() }})),
    found -> get(found, 0) is not null and get(found, 1)['seal'] = {{ seal(raw) }}) then null
  when not {{ raw }} rlike '[^ \\t\\r\\n]' then 'empty'
  when size(from_json(concat('[', {{ json }}, ',null]'), 'array<string>', {{ json_options() }})) = 2 then 'not-an-object'
  when from_json({{ json }}, 'map<string,string>', {{ json_options() }}) is not null then 'trailing-text'
  when from_json({{ json }}, 'array<string>', {{ json_options() }}) is not null then 'trailing-text'
  when size(from_json(concat('[', {{ json }}, ',null]'), 'array<string>', {{ json_options() }})) > 2 then 'trailing-text'
  else 'not-json' end
{%- endmacro -%}

{#- What stands at a path, read as a type; null if something else stands there, or above it. The path `.` is the whole. -#}
{%- macro read_at(path, type) -%}
{%- set path = path | reject('equalto', '.') | list -%}
from_json(json, '{% for part in path %}struct<{{ name(part) | sql_inner }} {% endfor %}{{ type | sql_inner }}{{ '>' * (path | length) }}', {{ json_options() }}){{ member(path) }}
{%- endmacro -%}

{%- macro texts_at(path, names) -%} {{ read_at(path, 'struct<' ~ names | each('text_member') | in_lines(4) ~ '>') }} {%- endmacro -%}
{%- macro text_member(one) -%} {{ name(one) }} string {%- endmacro -%}

{#- Bytes are looked for in the images as they are written. -#}
{%- macro text_again(path) -%} {{ read_at(path, 'string') }} {%- endmacro -%}
{%- macro texts_again(path) -%} coalesce({{ read_at(path, 'array<string>') }}, array({{ read_at(path, 'string') }})) {%- endmacro -%}

{#- A bare object counts as a list of one row. -#}
{%- macro rows_at(path) -%}
coalesce({{ read_at(path, 'array<map<string,string>>') }}, array_compact(array({{ read_at(path, 'map<string,string>') }})))
{%- endmacro -%}

{#- A bare text counts as a list of one name; any other bare value does not. -#}
{%- macro names_at(path) -%}
{%- set is_other -%}
({{ read_at(path, 'boolean') }} is not null or {{ read_at(path, 'double') }} is not null or startswith({{ read_at(path, 'string') }}, concat('\uFFFF', xxhash64(raw), ':')))
{%- endset -%}
{{ names_listed(read_at(path, 'array<string>'), read_at(path, 'string'), is_other) }}
{%- endmacro -%}

{#- The images in whose places something else stands than an image, or than a list of images and nulls. -#}
{%- macro misfits(places) -%}
array_compact(array(
{%- for image, path, kinds in places %}
    if({{ read_at(path, 'string') }} is not null
      {%- for kind in kinds %} and {{ read_at(path, kind) }} is null{% endfor %}, {{ text(image) }}, null){{ ',' if not loop.last }}
{%- endfor %}))
{%- endmacro -%}

{%- macro struct_in_parts(parts, indent) -%}
named_struct(
{%- for part, value in parts %}
{{ ' ' * indent }}  {{ part }}, {{ value }}{{ ',' if not loop.last }}
{%- endfor %})
{%- endmacro -%}

{%- macro if_found(part, value) -%} if(found.{{ part }} is null, null, {{ value }}) {%- endmacro -%}

{#- What was found without the marks of numbers, by its type. -#}
{%- macro rows_unmarked(rows) -%} transform({{ rows }}, r -> {{ members_unmarked('r') }}) {%- endmacro -%}
{%- macro texts_unmarked(texts) -%} transform({{ texts }}, v -> {{ unmarked('v') }}) {%- endmacro -%}
{%- macro values_unmarked(values) -%} transform({{ values }}, v -> {{ nested_unmarked('v') }}) {%- endmacro -%}
{%- macro objects_unmarked(objects, type) -%}
from_json({{ json_unmarked('to_json(' ~ objects ~ ')') }}, '{{ type | sql_inner }}', {{ json_options() }})
{%- endmacro -%}
{%- macro members_unmarked(members) -%}
transform_keys(transform_values({{ members }}, (c, v) -> {{ nested_unmarked('v') }}), (c, v) -> {{ unmarked('c') }})
{%- endmacro -%}

{#- Patterns that depend on the message are slow: they are only for texts that hold a mark. -#}
{%- macro unmarked(text) -%} if(contains({{ text }}, '\uFFFF'), replace({{ numbers_unmarked(text) }}, found.mark, ''), {{ text }}) {%- endmacro -%}

{%- macro numbers_unmarked(text) -%} regexp_replace({{ text }}, found.marked, '$1') {%- endmacro -%}

{#- The same for a value that may be nested JSON. -#}
{%- macro nested_unmarked(value) -%}
if(contains({{ value }}, '\uFFFF') or contains({{ value }}, '\\uD'), replace({{ with_characters(value, numbers_unmarked(value)) }}, found.mark, ''), {{ value }})
{%- endmacro -%}

{#- The same for the text of lists and objects whose values may be nested JSON: there quotes and backslashes have a backslash before them. -#}
{%- macro json_unmarked(json) -%}
{%- set colon -%} replace(found.mark, ';', ':') {%- endset -%}
{%- set nested -%} regexp_replace({{ json }}, concat('\\\\"', {{ colon }}, '([^"\\\\]++)\\\\"'), '$1') {%- endset -%}
replace(replace({{ with_characters(json, nested, 2) }}, {{ colon }}, ''), found.mark, '')
{%- endmacro -%}

{#- The text that `found` is, of a value that may be nested JSON: there the parser writes characters beyond U+FFFF as escapes, here with so many
    backslashes. Where a text has such an escape itself, its backslash is marked. -#}
{%- macro with_characters(value, found, backslashes=1) -%}
{%- set escape = '\\\\\\\\' * backslashes ~ 'uD' -%}
{%- set part = '(?s)' ~ escape ~ '[89AB][0-9A-F]{2}' ~ escape ~ '[C-F][0-9A-F]{2}|(?:(?!' ~ escape ~ '[89AB]).)++|.' -%}
if(contains({{ value }}, '\\uD'),
    array_join(transform(regexp_extract_all({{ found }}, '{{ part }}', 0),
      part -> if(part rlike '^{{ escape }}[89AB]', decode(unhex(concat(substr(part, {{ backslashes + 2 }}, 4), substr(part, {{ 2 * backslashes + 7 }}, 4))), 'UTF-16BE'), part)), ''),
    {{ found }})
{%- endmacro -%}
