{#- The columns' types, and which reader makes a column's values canonical. Each macro prints one expression, or one function. -#}

{#- Where messages name types, column -> type. -#}
{%- macro types_of_kinds(kinds) -%} if(kind {{ one_of(kinds) }}, types, null) {%- endmacro -%}

{%- macro types_together(lists, maps) -%}
if({{ lists | each('is_missing') | join(' and ') }}, null, {{ called_in_lines('map_concat', maps | each('or_no_map')) }})
{%- endmacro -%}

{%- macro types_of_objects(objects, type) -%} transform_values({{ objects }}, (c, t) -> {{ type }}) {%- endmacro -%}

{#- What the function table_columns does with types: of equal names the last counts, and hidden members are no columns. -#}
{%- macro types_once(types, has_hidden) -%}
{%- if has_hidden -%} map_filter(map_concat({{ types }}), (c, t) -> array_contains(hidden, c) is not true)
{%- else -%} map_concat({{ types }}) {%- endif -%}
{%- endmacro -%}

{%- macro chosen_list(lists, member, value, below) -%}
get(filter({{ lists }}, f -> f.{{ member }} = {{ text(value) }}), 0).{{ below }}
{%- endmacro -%}

{%- macro is_not_hidden(column) -%} not coalesce(array_contains(hidden, {{ column }}), false) {%- endmacro -%}

{%- macro types_in_list(list, condition, column, type) -%}
map_from_entries(transform(filter({{ list }}, t -> {{ condition }}), t -> struct({{ column }}, {{ type }})))
{%- endmacro -%}

{%- macro map_if_even(names, types) -%} if(size({{ names }}) = size({{ types }}), map_from_arrays({{ names }}, {{ types }}), null) {%- endmacro -%}

{%- macro types_beside_names(names, types) -%} if(exists({{ names }}, n -> n is null), null, {{ map_if_even(names, types) }}) {%- endmacro -%}

{%- macro types_in_text(sent) -%} from_json({{ sent }}, 'map<string,string>', {{ json_options() }}) {%- endmacro -%}

{%- macro types_in_objects_of_text(sent, members, type) -%}
transform_values(from_json({{ sent }}, {{ text('map<string,struct<' ~ (members | map('name') | join(':string,')) ~ ':string>>') }}, {{ json_options() }}), (c, t) -> {{ type }})
{%- endmacro -%}

{%- macro types_in_texts(found) -%} map_concat({{ found | each('or_no_map') | join(', ') }}) {%- endmacro -%}

{#- A type, and what follows it. -#}
{%- macro type_of_array(items, type) -%} coalesce(concat({{ items }}, '[]'), {{ type }}) {%- endmacro -%}

{%- macro type_with_params(type, params) -%}
concat({{ type }}, coalesce(concat('(', nullif(concat_ws(',', {{ params | join(', ') }}), ''), ')'), ''))
{%- endmacro -%}

{%- macro type_with_flags(type, number, flags) -%}
concat({{ type }}{% for bit, word in flags %}, if(getbit(try_cast({{ number }} as bigint), {{ bit }}) = 1, {{ text(' ' ~ word) }}, ''){% endfor %})
{%- endmacro -%}

{%- macro defaults_in_list(list, column, default) -%}
map_from_entries(transform(filter({{ list }}, t -> {{ default }} is not null), t -> struct(coalesce({{ column }}, ''), {{ default }})))
{%- endmacro -%}

{%- macro all_unfit(lists) -%} flatten(array_compact({{ called_in_lines('array', lists) }})) {%- endmacro -%}


{#- The types of the columns of each table, as the rows have them that a run has landed since a day: each once, or as often as rows have them, where these are few. Spark tells entries apart, but not maps. -#}
{%- macro types_landed(model, run_id, since, are_few) -%}
select tenant, db_name, schema_name, table_name, map_from_entries(entries) as types
from (
  select {{ '' if are_few else 'distinct ' }}tenant, db_name, schema_name, table_name, map_entries(types) as entries
  from {{ name(model) }}
  where kind = 'row' and landed_on >= date {{ text(since) }} and run_id = {{ text(run_id) }} and types is not null)
{%- endmacro -%}


{#- Readers ------------------------------------------------------------------------------------------------------------------------------ -#}

{#- A function that only one source has. -#}
{%- macro function_of_source(function, arguments, returns, about, body) -%}
create function {{ function }}(
  {%- for argument, (type, comment) in arguments.items() %}
  {{ argument }} {{ type }} comment {{ text(comment) }}{{ ',' if not loop.last }}
  {%- endfor %})
returns {{ returns }}
comment {{ text(about) }}
return {{ body }};
{%- endmacro -%}

{#- A type's name without what is in brackets and without `unsigned` and `zerofill`; or its first word, where that decides. -#}
{%- macro bare_type(type) -%}
trim(regexp_replace(regexp_replace(lower({{ type }}), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' '))
{%- endmacro -%}
{%- macro first_word_of_type(type) -%} lower(substring_index(substring_index({{ type }}, '(', 1), ' ', 1)) {%- endmacro -%}

{%- macro readers_of_types(bare_type, names, reader) -%}
transform_values(
  map_filter(types, (c, type) -> {{ bare_type }} in (
    {{ names | map('sql_text') | list | in_lines(4) }})),
  (c, type) -> get(transform(array({{ bare_type }}), t -> {{ reader }}), 0))
{%- endmacro -%}

{%- macro readers_found(readers) -%} map_filter({{ readers }}, (c, reader) -> reader is not null) {%- endmacro -%}

{%- macro is_type_among(names) -%} t in ({{ names | map('sql_text') | list | in_lines(6) }}) {%- endmacro -%}
{%- macro word_with_type(word) -%} concat({{ text(word ~ ' ') }}, type) {%- endmacro -%}

{#- What a source declares goes before the message's types. -#}
{%- macro or_no_map(map) -%} coalesce({{ map }}, map()) {%- endmacro -%}
{%- macro map_of_texts(texts) -%}
map({% for one, other in texts.items() %}{{ text(one) }}, {{ text(other) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endmacro -%}
{%- macro readers_but(readers, is_declared) -%} map_filter({{ readers }}, (c, reader) -> not coalesce({{ is_declared }}, false)) {%- endmacro -%}

{#- The readers of columns, without those of columns whose values are no texts. -#}
{%- macro readers_of_texts(readers) -%}
if(size(settled_columns) = 0, {{ readers }}, map_filter({{ readers }}, (c, r) -> not array_contains(settled_columns, c)))
{%- endmacro -%}

{#- The texts of the values that can be read. -#}
{%- macro texts_read(values, readers) -%}
if(image is null or size(readers) = 0, null, map_filter(map_from_arrays(map_keys(readers), zip_with(
  map_entries(readers), {{ values }}, (reader, v) -> case
  when v is null then null
  {%- for is_reader, read in readers %}
  when {{ is_reader }} then {{ read }}
  {%- endfor %} end)), (c, v) -> v is not null))
{%- endmacro -%}

{%- macro is_one_of_several(expression, texts) -%} {{ expression }} in ({{ texts | map('sql_text') | join(', ') }}) {%- endmacro -%}
{%- macro has_many(readers) -%} size({{ readers }}) > 10 {%- endmacro -%}

{%- macro values_sent() -%}
if(size(readers) > 100, {{ values_at_once('readers', 'image') }}, transform(map_keys(readers), c -> image[c]))
{%- endmacro -%}

{#- The same, where the exponents of one image may not make it longer than it may become. -#}
{%- macro values_within(is_number, is_possible, zeros_allowed) -%}
if({{ is_possible }} and aggregate(zip_with(map_values(readers), {{ values_sent() }},
      (reader, v) -> if({{ is_number }}, {{ zeros_written_out('v') }}, 0)), 0L, (total, zeros) -> total + zeros) > {{ zeros_allowed }},
    zip_with(map_values(readers), {{ values_sent() }}, (reader, v) -> if({{ is_number }} and v rlike '[eE]', null, v)),
    {{ values_sent() }})
{%- endmacro -%}

{#- By how many characters exponents may make each image of a message longer: its rows share what it may have, its own length or 100,000, which ten
    numbers cannot exceed. -#}
{%- macro zeros_allowed() -%}
if(1L * size(rows) * size(readers) > 10, greatest(100000, octet_length(raw)) div size(rows), null)
{%- endmacro -%}

{#- A list in JSON, each element in its canonical text. One that cannot be read leaves the whole list as sent. -#}
{%- macro read_each(read) -%}
get(transform(
      array(transform(from_json(v, 'array<string>', {{ json_options() }}), v -> case
        when v is null then 'null' else concat('"', {{ read }}, '"') end)),
      texts -> if(exists(texts, t -> t is null), null, concat('[', array_join(texts, ','), ']'))), 0)
{%- endmacro -%}
{%- macro if_it_has_texts(read) -%} if(contains(v, '"'), {{ read }}, v) {%- endmacro -%}

{#- What a Python function reads of one image: columns -> values, outside of lambdas, in which Spark cannot call it. -#}
{%- macro read_in_python(function, words, image) -%}
{{ function }}(if(
      exists(map_values(readers), r -> r {{ one_of(words) }}),
      map_filter({{ image }}, (c, v) -> coalesce(readers[c] {{ one_of(words) }}, false)), null))
{%- endmacro -%}

{#- Wall clocks that came twice. -#}
{%- macro columns_of_two_instants(readers) -%}
coalesce(map_keys(map_filter(map_zip_with(texts, map_zip_with(readers, image, (c, reader, v) -> struct(reader, v)), (c, t, sent) -> case
  {%- for is_reader, came_twice in readers %}
  when {{ is_reader }} then {{ came_twice }}
  {%- endfor %} end), (c, twice) -> twice)), array())
{%- endmacro -%}


{#- Bytes that may be no text in the message ----------------------------------------------------------------------------------------------- -#}

{#- A column may be something else than a text. The whole of it may be long. -#}
{%- macro row_may_be_no_text(side) -%} left({{ side }}[reader.key], 50) rlike {{ begins_no_text() }} {%- endmacro -%}
{%- macro rows_may_be_no_text(side) -%} exists({{ side }}, r -> left(r[reader.key], 50) rlike {{ begins_no_text() }}) {%- endmacro -%}

{%- macro begins_no_text() -%} '^(?:true|false|[{\\[]|-?[0-9][-+.0-9eE]*+\\z)' {%- endmacro -%}

{%- macro images_if_in_doubt(is_reader, tests, images, nothing="''", begins="concat_ws(',',") -%}
if(size(readers) > 1000, {{ nothing }}, if(exists(map_entries(readers), reader -> {{ is_reader }}
    and ({{ tests | join(' or ') }})),
  {{ begins }}
    {{ images | join(',\n    ') }}), null))
{%- endmacro -%}
{%- macro lists_if_in_doubt(is_reader, tests, lists) -%} {{ images_if_in_doubt(is_reader, tests, lists, 'array()', 'array(') }} {%- endmacro -%}

{%- macro row_in_doubt() -%} array_join(transform(rows_in_doubt, texts -> get(texts, nth)), ',') {%- endmacro -%}

{%- macro if_it_is_text(read) -%}
if(json_in_doubt is null or not v rlike {{ is_no_text() }} or {{ is_text('reader.key', 'v') }}, {{ read }}, null)
{%- endmacro -%}

{#- Whether a column's value is a text wherever the images hold it. Read again, the member is written as the images are, with the same escapes. -#}
{%- macro is_text(column, value) -%}
{%- set member -%} ltrim('{', rtrim('}', get_json_object(to_json(map({{ column }}, {{ value }})), '$'))) {%- endset -%}
{%- set bare -%} concat(ltrim('{', rtrim('"}', get_json_object(to_json(map({{ column }}, '')), '$'))), {{ value }} {%- endset -%}
contains(json_in_doubt, {{ member }}) and not contains(json_in_doubt, {{ bare }}, ',')) and not contains(json_in_doubt, {{ bare }}, '}'))
{%- endmacro -%}

{%- macro is_no_text() -%} '^(?:true\\z|false\\z|[{\\[]|-?[0-9][-+.0-9eE]*+\\z)' {%- endmacro -%}
