{#- Reading a message's text: exactly one JSON object, with the digits of its numbers as they were sent. -#}

{#- The one document of each message as `m`, or as `unread` why there is not one. Most messages are read in one go; the few whose fields have other
    shapes than usual are read again, each field for itself. -#}
{%- macro json_documents(plan) %}
{%- if plan.spec.message.batch %}

-- The messages in each message, one a row.  [message.batch]
messages as (
  select origin, arrival, nth, element as raw
  from (select *, json_elements(if(is_valid_utf8(raw), raw, null), cast(array({{ plan.spec.message.batch | reject('equalto', '.') | map('sql_text') | join(', ') }}) as array<string>)) as elements from {{ name(plan.source ~ '_messages') }})
  lateral view outer posexplode(coalesce(elements, array(raw))) each as nth, element
),
{%- elif plan.spec.message.frames %}
{%- set frames = plan.spec.message.frames %}

-- The events in each message, one a row: each is a frame of the key and one of the value.  [message.frames]
messages as (
  select origin, arrival, nth, event.text as raw, event.damage
  from (select *, framed_events(cast(raw as binary), origin.key, {{ text(frames.key_starts) }}, {{ text(frames.value_starts) }}, {{ frames.length_bytes }}) as events from {{ name(plan.source ~ '_messages') }})
  lateral view posexplode(events) each as nth, event
),
{%- elif plan.is_numbered %}

-- The messages without the numbers of schemas before them and before their keys.  [message.framing]
messages as (
  select {{ origin_without_number(plan.spec.message.number_bytes) }} as origin, arrival, {{ without_number('raw', plan.spec.message.number_bytes) }} as raw
  from {{ name(plan.source ~ '_messages') }}
),
{%- endif %}

-- The fields that the format names. A seal follows the document: in its place, it says that nothing else came with it.{{ '  [message.numbers]' if plan.json.exact }}
decoded as (
  select *, from_json(sealed({{ 'exact_numbers(raw)' if plan.json.exact else 'raw' }}, xxhash64(raw)),
      '{{ field_type(plan.json.sealed_fields, 8) | sql_inner }}',
      {{ json_options(plan.json.usual_depth) }}) as document
  from {{ 'messages' if plan.has_parts or plan.is_numbered else name(plan.source ~ '_messages') }}
),

-- The one document of each message, or why there is none. Where fields have an unusual shape, each is read for itself.
parsed as (
  select origin, arrival{{ ', nth' if plan.has_parts }}, raw, message.document as m, {{ "damage, if(damage is not null, 'bad-frames', message.reason)" if plan.spec.message.frames else 'message.reason' }} as parse_error
    {%- if plan.images.in_json or plan.images.in_lists %}, message.misfits{% endif %}
    {%- if plan.images.in_lists and plan.spec.drop %},{{ hidden_members(plan) }}{% endif %}
    {%- if plan.images.in_lists and '' in plan.spec.not_sent %},{{ placeholders(plan) }}{% endif %}
  from (select *, {{ name(plan.prefix ~ '_message') }}(document, raw) as message from decoded)
),
{%- if plan.placing.is_needed %}

{{ placed_fields(plan.placing) }}
{%- endif %}
{%- endmacro -%}

{#- A text in JSON, without the zero byte and the number of a schema before it. -#}
{%- macro without_number(json, bytes) -%} if(startswith({{ json }}, char(0)), cast(substring(cast({{ json }} as binary), {{ 2 + bytes }}) as string), {{ json }}) {%- endmacro -%}

{#- Where a number is no text, the key is in base64. -#}
{%- macro origin_without_number(bytes) -%}
named_struct('topic', origin.topic, 'partition', origin.partition, 'offset', origin.offset, 'timestamp', origin.timestamp,
      'key', {{ without_number("if(startswith(origin.key, 'AA') and " ~ is_base64('origin.key') ~ ', cast(unbase64(origin.key) as string), origin.key)', bytes) }},
      'headers', origin.headers, 'file', origin.file, 'block', origin.block)
{%- endmacro -%}

{#- Where paths start, with what came beside the message. -#}
{%- macro placed_fields(placing) -%}
{%- set used = [] -%}
{%- for word, is_used in (('message.root', placing.roots), ('$message', placing.above), ('$key', placing.key or placing.key_is_row), ('$topic', placing.has_topic), ('$headers', placing.has_headers)) if is_used -%}
{%- do used.append(word) -%}
{%- endfor -%}
-- The fields where paths start, with what came beside them.  [{{ used | join(', ') }}]
placed as (
  select * except (m, found{{ ', record_key' if placing.key }}), struct(found.*
    {%- if placing.above %}, struct({% for one in placing.above %}m.{{ name(one) }}{{ ', ' if not loop.last }}{% endfor %}) as `$message`{% endif %}
    {%- if placing.key %}, {{ first_root(placing.roots, 'record_key', placing.key) }} as `$key`{% endif %}
    {%- if placing.key_is_row %},
      coalesce(object_of_key(exact_numbers(origin.key), {{ names_of_roots(placing) }}), object_of_key(origin.key, {{ names_of_roots(placing) }})) as `$key`{% endif %}
    {%- if placing.has_topic %}, origin.topic as `$topic`{% endif %}
    {%- if placing.has_headers %},
      map_from_entries(transform(filter(origin.headers, h -> h.key is not null), h -> struct(h.key, h.value))) as `$headers`{% endif %}) as m
  from (select *, {{ found_root(placing) }} as found
      {%- if placing.key %},
      from_json(origin.key, '{{ key_type(placing) | sql_inner }}', {{ json_options() }}) as record_key
      {%- endif %} from parsed)
),
{%- endmacro -%}

{%- macro found_root(placing) -%}
{%- if placing.roots -%} {%- call(root) first_of(placing.roots) -%} {% if root[0] %}m{{ member(root[0]) }}{% else %}struct({% for one in root[1] %}m.{{ name(one) }}{{ ', ' if not loop.last }}{% endfor %}){% endif %} {%- endcall -%}
{%- else -%} m
{%- endif -%}
{%- endmacro -%}

{%- macro key_type(placing) -%}
{%- if not placing.roots -%} {{ field_type(placing.key, 6) }}
{%- else -%}
{%- set parts = [] -%}
{%- for path, names in placing.roots -%}
{%- if path -%} {%- do parts.append(name(path[0]) ~ ' ' ~ field_type(placing.key, 6)) -%}
{%- else -%} {%- for one, branch in placing.key.items() -%} {%- do parts.append(name(one) ~ ' ' ~ field_type(branch, 6)) -%} {%- endfor -%}
{%- endif -%}
{%- endfor -%}
struct<{{ parts | join(', ') }}>
{%- endif -%}
{%- endmacro -%}

{%- macro first_root(roots, found, tree) -%}
{%- if not roots -%} {{ found }}
{%- else -%} {%- call(root) first_of(roots) -%} {% if root[0] %}{{ found }}.{{ name(root[0][0]) }}{% else %}struct({% for one in tree %}{{ found }}.{{ name(one) }}{{ ', ' if not loop.last }}{% endfor %}){% endif %} {%- endcall -%}
{%- endif -%}
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

{#- Whether a value that is read is an object or a list where a text is expected: the numbers in it may have got quotes. What lies deeper than the
    format reads is refused by the parser. -#}
{%- macro holds_nested(plan) -%}
{%- for path in plan.json.value_lists %}
  or coalesce(exists(document{{ member(path) }}, v -> v rlike {{ is_no_text_in_list() }}), false)
{%- endfor -%}
{%- for path, value, is_list in plan.json.shallow_objects %}
  or coalesce(exists({% if is_list %}document{{ member(path) }}{% else %}map_values(document{{ member(path) }}){% endif %}, o -> startswith(o.{{ name(value) }}, '{') or startswith(o.{{ name(value) }}, '[')), false)
{%- endfor -%}
{%- for path, kind in plan.json.shallow -%}
{%- set value = 'document' ~ member(path) %}
  or coalesce({% if kind == 'string' -%} startswith({{ value }}, '{') or startswith({{ value }}, '[')
{%- elif kind == 'map<string,string>' -%} exists(map_values({{ value }}), v -> startswith(v, '{') or startswith(v, '['))
{%- else -%} exists({{ value }}, r -> exists(map_values(r), v -> startswith(v, '{') or startswith(v, '[')))
{%- endif -%}, false)
{%- endfor -%}
{%- endmacro -%}

{#- What a value in a list has become that was a number with a fraction or an exponent, whose digits are lost, an object or a list. -#}
{%- macro is_no_text_in_list() -%} '^(?:-?[0-9]+[.eE]|-?Infinity|NaN|[{\\[])' {%- endmacro -%}

{%- macro member(path) -%}{% for part in path %}.{{ name(part) }}{% endfor %}{%- endmacro -%}

{#- The type of a tree of fields: several fields a line, and each object in lines of its own. -#}
{%- macro field_type(tree, indent) -%}
{%- if tree is string -%} {{ tree }} {%- else -%}
{%- set parts = [] -%}
{%- for part, branch in tree.items() -%} {%- do parts.append(name(part) ~ ' ' ~ inner_type(branch, indent + 2)) -%} {%- endfor -%}
struct<{{ parts | in_lines(indent) }}>
{%- endif -%}
{%- endmacro -%}

{%- macro inner_type(tree, indent) -%}
{%- set type = field_type(tree, indent) -%}
{%- set broken = type | replace('struct<', 'struct<\n' ~ ' ' * indent, 1) -%}
{{ type if type | length < 50 else broken if tree is not string or type | length < 130 else broken | replace(':array<struct<', ':array<struct<\n' ~ ' ' * (indent + 2), 1) | replace(':struct<', ':struct<\n' ~ ' ' * (indent + 4), 2) }}
{%- endmacro -%}


{#- Messages of unusual shape ------------------------------------------------------------------------------------------------------------ -#}

{#- The function of a source that reads a message field by field, unless all of them have the usual shape. Lambdas hold what is used more than once:
    Spark computes arguments for every message, but what is in a branch only where it is taken. -#}
{%- macro document_function(plan) -%}
{%- set type = field_type(plan.json.sealed_fields, 4) -%}
create function {{ name(plan.prefix ~ '_message') }}(
  document {{ type }} comment 'what the parser made of the message',
  raw string comment 'the text of the message')
returns struct<document {{ type }}, misfits array<string>, reason string>
comment 'The document of a message, with the places of images that hold something else; or the reason why there is none.'
return if(raw is null{{ is_usual(plan) }}, named_struct('document', document, 'misfits', null, 'reason', null), get(transform(transform(
  array(marked(raw, concat('\uFFFF', xxhash64(raw), ':'), concat('\uFFFF', xxhash64(raw), ';'))),
  json -> struct(
    {{ why_not_one_object('raw', 'json') | indent(4) }} as reason,
    {{ marked_number('raw') }} as marked,
    concat('\uFFFF', xxhash64(raw), ';') as mark
    {%- for path, members in plan.json.texts.items() %},
    {{ read_at(path, type_of_texts(members, 4)) }} as {{ name(texts_of(path)) }}
    {%- endfor %}
    {%- for path, kind in plan.json.others %},
    {{ rows_at(path) if kind == 'array<map<string,string>>' else names_at(path) if kind == 'array<string>' else read_at(path, kind) }} as {{ name(path | join('_')) }}
    {%- endfor %},
    {{ misfits(plan) }} as misfits)),
  found -> named_struct(
    'document', if(found.reason is null, {{ struct_in_parts(plan, plan.json.fields, [], 4) }}, null),
    'misfits', found.misfits,
    'reason', found.reason)), 0));
{% endmacro -%}

{#- Whether a message is one document in which each field has the usual shape. -#}
{%- macro is_usual(plan) -%}
{%- if not plan.json.is_flat %} or coalesce(document.`_seal` = {{ seal('raw') }} and document.`_corrupt_record` is null and is_valid_utf8(raw)
    {%- if plan.json.exact %} and not (false{{ holds_nested(plan) }}){% endif %}, false){% endif -%}
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

{%- macro texts_of(path) -%} {{ (['texts'] + (path | list)) | join('_') }} {%- endmacro -%}

{#- What was found of a message that is read field by field. -#}
{%- macro found_part(part) -%} found.{{ name(part) }} {%- endmacro -%}

{%- macro type_of_texts(members, indent) -%}
{%- set parts = [] -%}
{%- for member in members -%} {%- do parts.append(name(member) ~ ' string') -%} {%- endfor -%}
struct<{{ parts | in_lines(indent) }}>
{%- endmacro -%}

{#- What stands at a path, read as a type; null if something else stands there, or above it. The path `.` is the whole. -#}
{%- macro read_at(path, type) -%}
{%- set path = path | reject('equalto', '.') | list -%}
from_json(json, '{% for part in path %}struct<{{ name(part) | sql_inner }} {% endfor %}{{ type | sql_inner }}{{ '>' * (path | length) }}', {{ json_options() }}){{ member(path) }}
{%- endmacro -%}

{%- macro struct_in_parts(plan, tree, above, indent) -%}
named_struct(
{%- for part, branch in tree.items() %}
{{ ' ' * indent }}  {{ text(part) }}, {% if branch is mapping and is_root(plan, above + [part]) | trim %}if({{ found_part(texts_of(above + [part])) }} is null, null, {{ struct_in_parts(plan, branch, above + [part], indent + 2) }}){% elif branch is mapping %}{{ struct_in_parts(plan, branch, above + [part], indent + 2) }}{% else %}{{ field_in_parts(plan, above, part, branch) }}{% endif %}{{ ',' if not loop.last or not above }}
{%- endfor %}
{%- if not above %}
{{ ' ' * indent }}  '_seal', null,
{{ ' ' * indent }}  '_corrupt_record', null{% endif %})
{%- endmacro -%}

{#- Whether paths start at an object, if it is there. -#}
{%- macro is_root(plan, path) -%} {%- for root, _ in plan.placing.roots if root | list == path and root in plan.json.texts -%} true {%- endfor -%} {%- endmacro -%}

{#- A field without marks. -#}
{%- macro field_in_parts(plan, above, part, kind) -%}
{%- set value = found_part((above + [part]) | join('_')) -%}
{%- if kind == 'string' -%} {{ unmarked(found_part(texts_of(above)) ~ '.' ~ name(part)) }}
{%- elif kind == 'array<map<string,string>>' -%} transform({{ value }}, r -> {{ members_unmarked('r') }})
{%- elif kind == 'map<string,string>' -%} {{ members_unmarked(value) }}
{%- elif kind == 'array<string>' -%} transform({{ value }}, v -> {{ nested_unmarked('v') if above + [part] in plan.json.value_lists | map('list') | list else unmarked('v') }})
{%- else -%} from_json({{ json_unmarked('to_json(' ~ value ~ ')') }}, '{{ kind | sql_inner }}', {{ json_options() }})
{%- endif -%}
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
{%- macro misfits(plan) -%}
array_compact(array(
{%- for image in plan.json.images %}
{%- set last = loop.last %}
{%- for path in image.paths %}
    if({{ read_at(path, 'string') }} is not null
      {%- for kind in image.kinds %} and {{ read_at(path, kind) }} is null{% endfor %}, {{ text(image.name) }}, null){{ ',' if not (last and loop.last) }}
{%- endfor %}
{%- endfor %}))
{%- endmacro -%}
