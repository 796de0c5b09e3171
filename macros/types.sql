{#- The columns' types, and which reader makes a column's values canonical. -#}

{#- The vendor's own types, column -> type. In a list those of members that are no columns are left out beforehand. -#}
{%- macro types(plan) -%}
{%- if plan.types_places -%}
{%- set sent -%}
{%- if plan.types_places | rejectattr('form', 'equalto', 'list') | list or plan.types_places | length == 1 -%}
{%- call(place) first_of(plan.types_places) -%} {{ types_at(place, plan) }} {%- endcall -%}
{%- else -%} {{ types_together(plan.types_places, plan) }}
{%- endif -%}
{%- endset -%}
{{ table_columns(sent, plan) if plan.types_places | rejectattr('form', 'equalto', 'list') | rejectattr('form', 'equalto', 'chosen') | list else sent }}
{%- elif plan.images.texts -%}
map_concat({% if plan.keys.image and plan.keys.image.text_column %}coalesce({{ key_types(plan.keys) }}, map()), {% endif %}coalesce({{ in_texts(plan.images.before, 'types') }}, map()), coalesce({{ in_texts(plan.images.after, 'types') }}, map()))
{%- else -%} cast(null as map<string,string>)
{%- endif -%}
{%- endmacro -%}

{#- A DDL has the types of its table, unless these stand in the images of rows. -#}
{%- macro types_of_message(plan) -%}
{%- if plan.types_places | rejectattr('form', 'equalto', 'text') | list -%} if(kind in ('row', 'ddl'), types, null)
{%- else -%} if(kind = 'row', types, null)
{%- endif -%}
{%- endmacro -%}

{%- macro types_at(place, plan) -%}
{%- set sent = field(place.path) -%}
{%- if place.form == 'map' -%} {{ sent }}
{%- elif place.form == 'objects' -%} transform_values({{ sent }}, (c, t) -> {{ type_in_object(place) }})
{%- elif place.form == 'list' -%}
{{ types_in_list(sent, place, plan) }}
{%- elif place.form == 'chosen' -%}
{{ types_in_list(chosen_list(place), place, plan) }}
{%- elif place.form == 'beside' -%} if(exists({{ field(place.names) }}, n -> n is null), null, {{ types_beside_names(field(place.names), sent) }})
{%- elif place.form == 'lists' -%}
{%- call(member) first_of(place.members) -%} {{ types_beside_names(sent ~ '.' ~ name(place.name), sent ~ '.' ~ name(member)) }} {%- endcall -%}
{%- elif place.members -%}
transform_values(from_json({{ sent }}, {{ text('map<string,struct<' ~ (place.members | map('name') | join(':string,')) ~ ':string>>') }}, {{ json_options() }}), (c, t) -> {{ type_in_object(place) }})
{%- else -%} from_json({{ sent }}, 'map<string,string>', {{ json_options() }})
{%- endif -%}
{%- endmacro -%}

{#- The defaults that a message names for its columns, column -> its text as sent. -#}
{%- macro defaults_sent(plan) -%}
{%- set list -%}
{%- call(place) first_of(plan.types_places) -%}
{%- if place.form == 'chosen' -%} {{ chosen_list(place) }} {%- else -%} {{ field(place.path) }} {%- endif -%}
{%- endcall -%}
{%- endset -%}
{%- set entry = plan.spec.types -%}
map_from_entries(transform(filter({{ list }}, t -> t.{{ name(entry.default) }} is not null), t -> struct(coalesce(t.{{ name(entry.name) }}, ''), t.{{ name(entry.default) }})))
{%- endmacro -%}

{%- macro chosen_list(place) -%}
get(filter({{ field(place.chosen.path) }}, f -> f.{{ name(place.chosen.member) }} = {{ text(place.chosen.value) }}), 0).{{ name(place.chosen.below) }}
{%- endmacro -%}

{#- The types in several lists: of a column that stands in more than one, that in the first. -#}
{%- macro types_together(places, plan) -%}
if({% for place in places %}{{ field(place.path) }} is null{{ ' and ' if not loop.last }}{% endfor %}, null, map_concat(
      {%- for place in places | reverse %}
      coalesce({{ types_at(place, plan) }}, map()){{ ',' if not loop.last }}
      {%- endfor %}))
{%- endmacro -%}

{%- macro types_in_list(list, place, plan) -%}
map_from_entries(transform(filter({{ list }}, t -> {% if plan.spec.drop %}not coalesce(array_contains(hidden, t.{{ name(place.name) }}), false) and {% endif %}t.{{ name(place.name) }} is not null), t -> struct(t.{{ name(place.name) }}, {{ type_in_object(place) }})))
{%- endmacro -%}

{%- macro type_in_object(place) -%}
{%- set type -%}
{%- if place.items -%} coalesce(concat({{ first_member(place, 't.' ~ name(place.items)) }}, '[]'), {{ first_member(place, 't') }}) {%- else -%} {{ first_member(place, 't') }} {%- endif -%}
{%- endset -%}
{%- if place.params -%}
concat({{ type }}, coalesce(concat('(', nullif(concat_ws(',', {% for path in place.params %}{{ 'coalesce(t.' ~ name(place.items) ~ member(path) ~ ', ' if place.items }}t{{ member(path) }}{{ ')' if place.items }}{{ ', ' if not loop.last }}{% endfor %}), ''), ')'), ''))
{%- elif place.flags -%}
concat({{ type }}{% for bit, word in place.flags %}, if(getbit(try_cast(t.{{ name(place.flag) }} as bigint), {{ bit }}) = 1, {{ text(' ' ~ word) }}, ''){% endfor %})
{%- else -%} {{ type }} {%- endif -%}
{%- endmacro -%}

{%- macro first_member(place, object) -%} {%- call(one) first_of(place.members) -%} {{ object }}.{{ name(one) }} {%- endcall -%} {%- endmacro -%}

{%- macro types_beside_names(names, types) -%} if(size({{ names }}) = size({{ types }}), map_from_arrays({{ names }}, {{ types }}), null) {%- endmacro -%}

{#- What a function that reads texts has found beside the values of an image. -#}
{%- macro in_texts(side, member) -%}
{%- if side.texts -%} case{% for column, verdicts in side.by_text %} when verdict {{ one_of(verdicts) }} then {{ name(column) }}.{{ member }}{% endfor %} end
{%- else -%} null
{%- endif -%}
{%- endmacro -%}

{%- macro key_types(keys) -%} columns_of({{ name(keys.image.text_column) }}.types, null, {{ key_columns_of_image(keys) }}) {%- endmacro -%}

{#- The columns whose values are as sent because they do not fit their types. -#}
{%- macro unfit_in_texts(plan) -%}
flatten(array_compact(array(
      {%- if plan.keys.image and plan.keys.image.text_column %}
      array_intersect({{ name(plan.keys.image.text_column) }}.as_sent, {{ key_columns_of_image(plan.keys) }}),
      {%- endif %}
      {{ in_texts(plan.images.before, 'as_sent') }},
      {{ in_texts(plan.images.after, 'as_sent') }})))
{%- endmacro -%}


{#- The types of the columns of each table, as the rows have them that a run has landed since a day: each once, or as often as rows have them, where these are few. Spark tells entries apart, but not maps. -#}
{%- macro types_landed(model, run_id, since, are_few) -%}
select tenant, db_name, schema_name, table_name, map_from_entries(entries) as types
from (
  select {{ '' if are_few else 'distinct ' }}tenant, db_name, schema_name, table_name, map_entries(types) as entries
  from {{ name(model) }}
  where kind = 'row' and landed_on >= date {{ text(since) }} and run_id = {{ text(run_id) }} and types is not null)
{%- endmacro -%}


{#- Readers ------------------------------------------------------------------------------------------------------------------------------ -#}

{#- The functions of a source that read values. -#}
{%- macro value_functions(plan) -%}
{%- if plan.values.by_type %}
{%- set by_type = plan.values.by_type %}
create function {{ name(plan.prefix ~ '_readers') }}(
  types map<string,string> comment 'the types of columns, as the vendor writes them'{{ ',
  kind string comment \'what chooses the table of types\'' if by_type.by }})
returns map<string,string>
comment 'The columns whose text as sent may not be canonical, each with what reads it{{ '; behind the name of a reader that needs it stands the type' if plan.values.need_types }}.'
return {{ 'map_filter(' if by_type.by }}transform_values(
  map_filter(types, (c, type) -> {{ bare_type('type', by_type) }} in (
    {{ by_type.names | map('sql_text') | list | in_lines(4) }})),
  (c, type) -> get(transform(array({{ bare_type('type', by_type) }}), t -> {{ reader_of(by_type) }}), 0)){{ ', (c, reader) -> reader is not null)' if by_type.by }};
{% endif %}
{%- if plan.bytes_in_doubt %}{{ in_doubt(plan) }}{% endif %}
create function {{ name(plan.prefix ~ '_texts') }}(
  image map<string,string> comment 'an image as it was sent',
  readers map<string,string> comment 'the columns whose text may not be canonical, each with what reads it'
  {%- if plan.images.in_lists and plan.values.exponents %},
  zeros_allowed bigint comment 'by how many characters exponents may make the image longer; null if they are too few to count'
  {%- endif %}
  {%- if plan.bytes_in_doubt %},
  json_in_doubt string comment 'the images in JSON, if they may hold bytes that are no text there'
  {%- endif %}
  {%- for one in plan.values.python %},
  {{ one.function }} map<string,string> comment 'the columns that a function over the whole image reads, as it read them'
  {%- endfor %})
returns map<string,string>
comment 'The canonical text of each value that needs to be read and can be; null if there is none that needs to be.'
return if(image is null or size(readers) = 0, null, map_filter(map_from_arrays(map_keys(readers), zip_with(
  map_entries(readers), {{ values_to_read(plan) }}, (reader, v) -> case
  when v is null then null
  {%- for reader in plan.values.readers %}
  when {{ is_reader('reader.value', reader) }} then {{ read_each(reader) if reader.of_elements else read_first(reader, plan) }}
  {%- endfor %} end)), (c, v) -> v is not null));
{% if plan.values.ambiguous %}
create function {{ name(plan.prefix ~ '_ambiguous') }}(
  image map<string,string> comment 'an image as it was sent',
  readers map<string,string> comment 'the columns whose text may not be canonical, each with what reads it',
  texts map<string,string> comment 'the canonical text of those values that could be read')
returns array<string>
comment 'The columns whose wall clock came twice in its zone: the text is the first of two instants.'
return coalesce(map_keys(map_filter(map_zip_with(texts, map_zip_with(readers, image, (c, reader, v) -> struct(reader, v)), (c, t, sent) -> case
  {%- for reader in plan.values.ambiguous %}
  when {{ is_reader('sent.reader', reader) }} then {% for attempt in reader.ambiguous %}{{ macro('came_twice_' ~ attempt.kind)('sent.v', 't', attempt.zone) }}{{ ' or ' if not loop.last }}{% endfor %}
  {%- endfor %} end), (c, twice) -> twice)), array());
{% endif -%}
{% endmacro -%}

{#- What tells whether the bytes of an image are texts in the message. Read once for a message: its rows may be many. -#}
{%- macro in_doubt(plan) %}
create function {{ name(plan.prefix ~ '_in_doubt') }}(
  json string comment 'the text of a message',
  {%- for side in ('before', 'after') %}
  {{ side }} {{ 'array<map<string,string>>' if plan.images.in_lists else 'map<string,string>' }} comment 'what was sent of the {{ 'rows' if plan.images.in_lists else 'row' }} {{ side }} a change',
  {%- endfor %}
  readers map<string,string> comment 'the columns whose text as sent may not be canonical, each with what reads it')
returns {{ 'array<array<string>>' if plan.images.in_lists else 'string' }}
comment 'The {{ 'lists of images' if plan.images.in_lists else 'images' }} of the message in JSON without blanks, if a column of bytes has a value that may be no text in them but a number, a word, a list or an object; else null. Empty if more than 1,000 columns need to be read: too many to look each up.'
return if(size(readers) > 1000, {{ "array()" if plan.images.in_lists else "''" }}, if(exists(map_entries(readers), reader -> {{ is_reader_of_bytes(plan.values.bytes) }}
    and ({{ may_be_no_text('before', plan) }} or {{ may_be_no_text('after', plan) }})),
  {{ 'array(' if plan.images.in_lists else "concat_ws(','," }}
    {%- for path in plan.json.images | map(attribute='paths') | sum(start=()) %}
    {% if plan.images.in_lists %}coalesce({{ read_at(path, 'array<string>') }}, array({{ read_at(path, 'string') }})){% else %}{{ read_at(path, 'string') }}{% endif %}{{ ',' if not loop.last }}
    {%- endfor %}), null));
{% endmacro -%}

{#- Whether a value of the column `reader.key` may be something else than a text. The whole of it may be long. -#}
{%- macro may_be_no_text(side, plan) -%}
{%- if plan.images.in_lists -%} exists({{ side }}, r -> left(r[reader.key], 50) rlike {{ begins_no_text() }})
{%- else -%} left({{ side }}[reader.key], 50) rlike {{ begins_no_text() }}
{%- endif -%}
{%- endmacro -%}

{%- macro is_reader_of_bytes(readers) -%}
{%- set words = readers | rejectattr('needs_type') | map(attribute='word') | list -%}
{%- set typed = readers | selectattr('needs_type') | list -%}
{{ '(' if words and typed or typed | length > 1 }}{% if words %}reader.value in ({{ words | map('sql_text') | join(', ') }}){% endif %}
{%- for reader in typed %}{{ ' or ' if words or not loop.first }}{{ is_reader('reader.value', reader) }}{% endfor %}{{ ')' if words and typed or typed | length > 1 }}
{%- endmacro -%}

{%- macro begins_no_text() -%} '^(?:true|false|[{\\[]|-?[0-9][-+.0-9eE]*+\\z)' {%- endmacro -%}

{#- The values that readers read, in their order. The exponents of one image are written out if they all together do not make it longer than it may
    become. -#}
{%- macro values_to_read(plan) -%}
{%- if plan.values.exponents -%}
{%- set is_number = 'reader in (' ~ (plan.values.exponents | map('sql_text') | join(', ')) ~ ')' -%}
if({{ 'zeros_allowed is not null' if plan.images.in_lists else 'size(readers) > 10' }} and aggregate(zip_with(map_values(readers), {{ values_sent() }},
      (reader, v) -> if({{ is_number }}, {{ zeros_written_out('v') }}, 0)), 0L, (total, zeros) -> total + zeros) > {{ 'zeros_allowed' if plan.images.in_lists else '100000' }},
    zip_with(map_values(readers), {{ values_sent() }}, (reader, v) -> if({{ is_number }} and v rlike '[eE]', null, v)),
    {{ values_sent() }})
{%- else -%} {{ values_sent() }}
{%- endif -%}
{%- endmacro -%}

{%- macro values_sent() -%}
if(size(readers) > 100, {{ values_at_once('readers', 'image') }}, transform(map_keys(readers), c -> image[c]))
{%- endmacro -%}

{#- By how many characters exponents may make each image of a message longer: its rows share what it may have, its own length or 100,000, which ten
    numbers cannot exceed. -#}
{%- macro zeros_allowed() -%}
if(1L * size(rows) * size(readers) > 10, greatest(100000, octet_length(raw)) div size(rows), null)
{%- endmacro -%}

{%- macro read_first(reader, plan) -%} {%- call(attempt) first_of(reader.attempts) -%} {{ read_attempt(attempt, plan) }} {%- endcall -%} {%- endmacro -%}

{#- A list in JSON, each element in its canonical text. One that cannot be read leaves the whole list as sent. -#}
{%- macro read_each(reader) -%}
{%- set each -%}
get(transform(
      array(transform(from_json(v, 'array<string>', {{ json_options() }}), v -> case
        when v is null then 'null' else concat('"', {% call(attempt) first_of(reader.attempts) %}{{ macro('read_' ~ attempt.kind)('v', attempt.zone) }}{% endcall %}, '"') end)),
      texts -> if(exists(texts, t -> t is null), null, concat('[', array_join(texts, ','), ']'))), 0)
{%- endset -%}
{#- Numbers have their digits as they are. -#}
{{ "if(contains(v, '\"'), " ~ each ~ ', v)' if 'decimal' in reader.attempts | map(attribute='kind') | list else each }}
{%- endmacro -%}

{#- A value, read in one of the ways to try. Only a text can be an encoding of bytes. -#}
{%- macro read_attempt(attempt, plan) -%}
{%- set found = macro('read_' ~ attempt.kind)('v', attempt.zone) -%}
{%- if attempt.is_bytes and plan.bytes_in_doubt -%} if(json_in_doubt is null or not v rlike {{ is_no_text() }} or {{ is_text('reader.key', 'v') }}, {{ found }}, null) {%- else -%} {{ found }} {%- endif -%}
{%- endmacro -%}

{#- Whether a column's value is a text wherever the images hold it. Read again, the member is written as the images are, with the same escapes. -#}
{%- macro is_text(column, value) -%}
{%- set member -%} ltrim('{', rtrim('}', get_json_object(to_json(map({{ column }}, {{ value }})), '$'))) {%- endset -%}
{%- set bare -%} concat(ltrim('{', rtrim('"}', get_json_object(to_json(map({{ column }}, '')), '$'))), {{ value }} {%- endset -%}
contains(json_in_doubt, {{ member }}) and not contains(json_in_doubt, {{ bare }}, ',')) and not contains(json_in_doubt, {{ bare }}, '}'))
{%- endmacro -%}

{%- macro is_no_text() -%} '^(?:true\\z|false\\z|[{\\[]|-?[0-9][-+.0-9eE]*+\\z)' {%- endmacro -%}

{%- macro is_reader(word, reader) -%}
{%- if reader.needs_type -%} startswith({{ word }}, {{ text(reader.word ~ ' ') }}) {%- else -%} {{ word }} = {{ text(reader.word) }} {%- endif -%}
{%- endmacro -%}

{#- A type's name without what is in brackets and without `unsigned` and `zerofill`: the first word, where that decides. -#}
{%- macro bare_type(type, by_type) -%}
{%- if by_type.may_be_long -%}
trim(regexp_replace(regexp_replace(lower({{ type }}), '\\([0-9, *]*\\)|\\(.*| unsigned\\b| signed\\b| zerofill\\b', ' '), ' +', ' '))
{%- else -%} lower(substring_index(substring_index({{ type }}, '(', 1), ' ', 1))
{%- endif -%}
{%- endmacro -%}

{#- The readers of columns: what a source declares goes before the message's types. -#}
{%- macro readers(plan) -%}
{%- set read = plan.tables.typed | selectattr('readers') | list -%}
{%- if not plan.tables.typed -%} {{ readers_of_types(plan) }}
{%- else -%}
map_concat(
      {% if plan.values.by_type -%}
      coalesce(map_filter({{ readers_of_types(plan) }}, (c, reader) -> not coalesce(case
        {%- for table in plan.tables.typed %}
        when {{ table_is(table.name) }} then c in ({{ table.columns | map('sql_text') | join(', ') }})
        {%- endfor %} end, false)), map()),
      {%- endif %}
      {% if read -%}
      coalesce(case
        {%- for table in read %}
        when {{ table_is(table.name) }} then map(
          {%- for column, reader in table.readers.items() %}
          {{ text(column) }}, {{ text(reader.word ~ (' ' ~ table.columns[column] if reader.needs_type else '')) }}{{ ',' if not loop.last }}
          {%- endfor %})
        {%- endfor %} end, map())
      {%- else -%} map() {%- endif -%} )
{%- endif -%}
{%- endmacro -%}

{%- macro readers_of_types(plan) -%}
{{ name(plan.prefix ~ '_readers') }}(types{{ ', ' ~ plain(plan.values.by_type.by) if plan.values.by_type.by }})
{%- endmacro -%}

{%- macro reader_of(by_type) -%}
{%- if not by_type.by -%} {{ reader_in(by_type.cases[0]) }}
{%- else -%}
case
    {%- for one in by_type.cases %}
    {% if one.texts %}when {{ fits_any('lower(kind)', one.texts | map('lower') | list) }} then{% else %}else{% endif %} {% if one.readers %}{{ reader_in(one) | indent(2) }}{% else %}null{% endif %}
    {%- endfor %} end
{%- endif -%}
{%- endmacro -%}

{%- macro reader_in(one) -%}
case
    {%- for reader, names in one.readers.items() %}
    when t in ({{ names | map('sql_text') | list | in_lines(6) }})
      then {% if reader.needs_type %}concat({{ text(reader.word ~ ' ') }}, type){% else %}{{ text(reader.word) }}{% endif %}
    {%- endfor %} end
{%- endmacro -%}

{#- What a Python function reads of one image: columns -> values, outside of lambdas, in which Spark cannot call it. -#}
{%- macro python_reading(one, side) -%}
{{ one.function }}(if(
      exists(map_values(readers), r -> r {{ one_of(one.words) }}),
      map_filter(sent_{{ side }}, (c, v) -> coalesce(readers[c] {{ one_of(one.words) }}, false)), null))
{%- endmacro -%}
