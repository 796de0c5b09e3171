{#- Keys and entries of meta. Each macro prints one expression. -#}

{#- Whether a table has this name, whose first parts may be missing. -#}
{%- macro is_table(parts) -%} slice(table_names, -{{ parts | length }}, {{ parts | length }}) = {{ array_of(parts | map('sql_text')) }} {%- endmacro -%}

{%- macro first_names(others, last) -%}
coalesce({% for names in others %}nullif({{ names }}, cast(array() as array<string>)), {% endfor %}{{ last }})
{%- endmacro -%}

{%- macro texts_of(texts) -%} cast({{ array_of(texts | map('sql_text')) }} as array<string>) {%- endmacro -%}

{%- macro names_by_position(indexes, names) -%} transform({{ indexes }}, i -> get({{ names }}, try_cast(i as int))) {%- endmacro -%}

{#- Names as the function key_columns has them, which cannot be given what is filtered: no argument of a SQL function has a lambda. -#}
{%- macro columns_among(names, hidden) -%} array_except({{ names }}, {{ hidden }}) {%- endmacro -%}
{%- macro flagged_objects(objects, flag, member) -%} filter({{ objects }}, c -> c.{{ flag }} = 'true' and c.{{ member }} is not null) {%- endmacro -%}
{%- macro flagged_members(members, flag) -%} map_filter({{ members }}, (n, c) -> c.{{ flag }} = 'true') {%- endmacro -%}

{%- macro split_names(sent, separator) -%} split(nullif({{ sent }}, ''), {{ split_pattern(separator) }}, -1) {%- endmacro -%}
{%- macro split_values(sent, separator) -%} split({{ sent }}, {{ split_pattern(separator) }}, -1) {%- endmacro -%}
{%- macro split_pattern(separator) -%} {{ text('\\Q' ~ separator ~ '\\E') }} {%- endmacro -%}

{#- A list of names, or one name, that is a member of the document in a text. -#}
{%- macro names_in_text(document, key) -%}
coalesce({{ member_of_text(document, key, 'array<string>') }}, listed_names(null, {{ member_of_text(document, key, 'string') }},
      {{ member_of_text(document, key, 'boolean') }} is not null or {{ member_of_text(document, key, 'double') }} is not null))
{%- endmacro -%}

{%- macro member_of_text(document, key, type) -%}
from_json({{ document }}, {{ text('struct<' ~ name(key) ~ ':' ~ type ~ '>') }}, {{ json_options() }}).{{ name(key) }}
{%- endmacro -%}

{#- A list of names as it is, and a bare text as a list of one. Nothing is used more than once. -#}
{%- macro names_listed(names, name, is_other) -%}
get(filter(array({{ names }}, array({{ name }})), (one, nth) -> if(nth = 0, one is not null, left(get(one, 0), 1) not in ('', '{') and not {{ is_other }})), 0)
{%- endmacro -%}

{%- macro unless_columns_are(image, columns, otherwise) -%} if(map_keys({{ image }}) = {{ columns }}, null, {{ otherwise }}) {%- endmacro -%}

{#- A position of a key column, from 0, that no column has. -#}
{%- macro is_beyond(indexes, names) -%} exists({{ indexes }}, i -> i < 0 or i >= coalesce(size({{ names }}), 0)) {%- endmacro -%}
{%- macro indexes_of_columns(path, indexes, names) -%}
concat({{ text(path ~ ': ') }}, array_join({{ indexes }}, ','), ' of ', coalesce(size({{ names }}), 0), ' columns')
{%- endmacro -%}

{#- The key before an update, if it can differ from the one after it. -#}
{%- macro key_before() -%}
if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null)
{%- endmacro -%}

{%- macro old_key() -%} if(key is not null and not map_values(key_before) <=> map_values(key), key_before, null) {%- endmacro -%}


{#- Meta ------------------------------------------------------------------------------------------------------------------------------------ -#}

{%- macro known_entries(entries) -%} known_entries(map({{ entries.items() | each('named_entry') | in_lines(4) }})) {%- endmacro -%}
{%- macro named_entry(entry) -%} {{ text(entry[0]) }}, {{ entry[1] }} {%- endmacro -%}

{%- macro names_without_key(kinds) -%} if(kind {{ one_of(kinds) }} and key is null, array_join(key_names, ','), null) {%- endmacro -%}

{%- macro defaults_in_json(defaults) -%} nullif(to_json({{ defaults }}), '{}') {%- endmacro -%}

{#- What was read from a wall clock that came twice. -#}
{%- macro time_came_twice(column, instant, zone) -%}
if({{ came_twice('cast(' ~ instant ~ ' as string)', text(zone.name)) }}, array({{ text(column) }}), array())
{%- endmacro -%}

{%- macro columns_of_rows(columns) -%} if(kind = 'row', {{ columns }}, array()) {%- endmacro -%}

{%- macro encoding_of_text() -%} if(reason = 'not-utf8', 'base64', null) {%- endmacro -%}
{%- macro encoding_any_text() -%} if(not is_valid_utf8(raw), 'base64', null) {%- endmacro -%}
{%- macro encoding_any_bytes() -%} if(raw is null, null, 'base64') {%- endmacro -%}
{%- macro whole_letter() -%} if(is_whole and reason is not null, 'message', null) {%- endmacro -%}
{%- macro of_raw(column) -%} if(raw is null, null, {{ column }}) {%- endmacro -%}
{%- macro encoding_none() -%} cast(null as string) {%- endmacro -%}
{%- macro encoding_of_bytes() -%} if(kind = 'dead_letter', 'base64', null) {%- endmacro -%}
