{#- Keys and entries of meta. -#}

{#- Whether a table has this name, whose first parts may be missing. -#}
{%- macro table_is(parts) -%} slice(table_names, -{{ parts | length }}, {{ parts | length }}) = array({{ parts | map('sql_text') | join(', ') }}) {%- endmacro -%}

{#- The names of the key columns: those that the message names, else those that the source declares for the table. -#}
{%- macro key_names(plan) -%}
{%- if plan.keys.names | length > 1 -%} coalesce({% for names in plan.keys.names %}{% if not loop.last %}nullif({{ names_of_key(names, plan) }}, cast(array() as array<string>)), {% else %}{{ names_of_key(names, plan) }}{% endif %}{% endfor %})
{%- elif plan.keys.names -%} {{ names_of_key(plan.keys.names[0], plan) }}
{%- else -%} cast(null as array<string>) {%- endif -%}
{%- endmacro -%}

{%- macro names_of_key(names, plan) -%}
{%- set key = names.key -%}
{%- if names.form == 'columns' -%} array({{ key.columns | map('sql_text') | join(', ') }})
{%- elif names.form == 'record' -%} {%- call without_dropped(plan) -%} members_of_key(origin.key, {{ names_of_roots(plan.placing) }}) {%- endcall -%}
{%- elif names.form == 'members' -%}
{%- call without_dropped(plan) -%} {{ names_of_members(key) }} {%- endcall -%}
{%- elif names.form == 'positions' -%} transform({{ field(key.indexes) }}, i -> get({{ field(key.names[0]) }}, try_cast(i as int)))
{%- elif names.form == 'joined' -%} {{ split_names(key) }}
{%- elif names.form == 'split' -%} {%- call without_dropped(plan) -%} {{ split_names(key) }} {%- endcall -%}
{%- elif names.form == 'declared' -%} {{ declared_key(plan.tables.keyed) }}
{%- elif names.form == 'text' -%} {%- call without_dropped(plan) -%} {%- call(path) first_of(key.names) -%} {{ names_in_text(path) }} {%- endcall -%} {%- endcall -%}
{%- else -%} {%- call without_dropped(plan) -%} {{ first_field(key.names) }} {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{#- The names of members, or of objects in a list; with a flag, of those in which it is true. -#}
{%- macro names_of_members(key) -%}
{%- set found = field(key.members) -%}
{%- if key.member -%}
transform({% if key.flag %}filter({{ found }}, c -> c.{{ name(key.flag) }} = 'true'){% else %}{{ found }}{% endif %}, c -> c.{{ name(key.member) }})
{%- else -%} map_keys({% if key.flag %}map_filter({{ found }}, (n, c) -> c.{{ name(key.flag) }} = 'true'){% else %}{{ found }}{% endif %})
{%- endif -%}
{%- endmacro -%}

{#- The names of the roots that are objects in the message. -#}
{%- macro names_of_roots(placing) -%}
cast(array({% for root, _ in placing.roots if root %}{{ text(root[0]) }}{{ ', ' if not loop.last }}{% endfor %}) as array<string>)
{%- endmacro -%}

{#- A list of names, which the caller prints, without nulls and members that are not columns. -#}
{%- macro without_dropped(plan) -%} key_columns({{ caller() }}, {{ hidden(plan) }}) {%- endmacro -%}

{%- macro split_names(key) -%} split(nullif({{ first_field(key.names) }}, ''), {{ split_pattern(key) }}, -1) {%- endmacro -%}

{#- A list of names, or one name, that is a member of the document in a text. -#}
{%- macro names_in_text(path) -%}
coalesce({{ member_of_text(path, 'array<string>') }}, listed_names(null, {{ member_of_text(path, 'string') }},
      {{ member_of_text(path, 'boolean') }} is not null or {{ member_of_text(path, 'double') }} is not null))
{%- endmacro -%}

{#- A list of names as it is, and a bare text as a list of one. Nothing is used more than once. -#}
{%- macro names_listed(names, name, is_other) -%}
get(filter(array({{ names }}, array({{ name }})), (one, nth) -> if(nth = 0, one is not null, left(get(one, 0), 1) not in ('', '{') and not {{ is_other }})), 0)
{%- endmacro -%}

{%- macro member_of_text(path, type) -%}
from_json({{ field(path[:-1]) }}, {{ text('struct<' ~ name(path[-1]) ~ ':' ~ type ~ '>') }}, {{ json_options() }}).{{ name(path[-1]) }}
{%- endmacro -%}

{%- macro split_pattern(key) -%} {{ text('\\Q' ~ key.split ~ '\\E') }} {%- endmacro -%}

{%- macro declared_key(tables) -%}
case
      {%- for table in tables %} when {{ table_is(table.name) }} then array({{ table.key | map('sql_text') | join(', ') }}){% endfor %} end
{%- endmacro -%}

{#- The key in an image beside the row; and that image as it was sent, if it says more than the key, or cannot be read. -#}
{%- macro key_image(keys) -%}
{%- set image -%} {% if keys.image.text_column %}{{ name(keys.image.text_column) }}.values{% else %}{{ first_field(keys.image.paths) }}{% endif %} {%- endset -%}
columns_of({{ image }}, null, {{ key_columns_of_image(keys) }}) as key_image,
    if(map_keys({{ image }}) = {{ key_columns_of_image(keys) }}, null, {{ first_field(keys.image.paths) if keys.image.text_column else 'to_json(' ~ image ~ ')' }}) as more_than_key
{%- endmacro -%}

{%- macro key_columns_of_image(keys) -%} array({{ keys.image_columns | map('sql_text') | join(', ') }}) {%- endmacro -%}

{#- The key: the key columns of the row; else those of the image beside it, or the vendor's joined values, where there are as many of them as names. -#}
{%- macro key_of(plan) -%}
case
      {%- if plan.keys.joined %}
      when kind = 'row' then coalesce(columns_of(after, before, key_names), key_with_values(after, before, key_names, {{ joined_values(plan.keys.joined) }}))
      {%- elif plan.keys.image %} when kind = 'row' then coalesce(columns_of(after, before, key_names), key_image)
      {%- else %} when kind = 'row' then columns_of(after, before, key_names)
      {%- endif %} end
{%- endmacro -%}

{%- macro joined_values(key) -%} split({{ first_field(key.values) }}, {{ split_pattern(key) }}, -1) {%- endmacro -%}

{#- The key before an update, if it can differ from the one after it. -#}
{%- macro key_before() -%}
if(op = 'update' and arrays_overlap(key_names, columns_before), columns_of(before, after, key_names), null)
{%- endmacro -%}

{%- macro meta(plan) -%}
{%- set parts = [] -%}
{%- for entry in plan.meta -%}
{%- do parts.append(text(entry.name) ~ ', ' ~ meta_value(entry)) -%}
{%- endfor -%}
{%- if plan.keys.image -%} {%- do parts.append("'where', if(kind = 'row', more_than_key, null)") -%} {%- endif -%}
{%- if plan.images.others -%} {%- do parts.append("'other_image', other_image") -%} {%- endif -%}
{%- if plan.keys.names -%}
{%- do parts.append("'key_columns', if(" ~ ("kind in ('row', 'ddl')" if plan.keys.are_sent else "kind = 'row'") ~ " and key is null, array_join(key_names, ','), null)") -%}
{%- endif -%}
{%- if plan.spec.types and plan.spec.types.default -%}
{%- do parts.append("'defaults', nullif(to_json(" ~ defaults_read(plan) ~ "), '{}')") -%}
{%- endif -%}
{%- if plan.tells_as_sent -%}
{%- do parts.append("'as_sent', names_joined(columns_as_sent)") -%}
{%- endif -%}
{%- if plan.tells_ambiguous_times -%} {%- do parts.append("'ambiguous_times', names_joined(ambiguous_times)") -%} {%- endif -%}
{%- do parts.append("'raw_encoding', " ~ ("if(kind = 'dead_letter', 'base64', null)" if plan.avro else "if(reason = 'not-utf8', 'base64', null)")) -%}
known_entries(map({{ parts | in_lines(4) }}))
{%- endmacro -%}

{#- The defaults of columns in canonical text. -#}
{%- macro defaults_read(plan) -%}
{%- if plan.values.readers -%}
with_texts(defaults, {{ name(plan.prefix ~ '_texts') }}(defaults, readers{{ ', null' if plan.bytes_in_doubt }}{% for one in plan.values.python %}, null{% endfor %}))
{%- else -%} defaults
{%- endif -%}
{%- endmacro -%}

{#- What was read from a wall clock that came twice: columns of the table, and times of the header. -#}
{%- macro ambiguous_times(plan) -%}
{%- set parts = [] -%}
{%- for column in plan.ambiguous_columns -%}
{%- set instant = 'cast(' ~ column_value(column, plan.zone) ~ ' as string)' -%}
{%- do parts.append('if(' ~ came_twice(instant, text(plan.zone.name)) ~ ', array(' ~ text(column.name) ~ '), array())') -%}
{%- endfor -%}
{%- if plan.values.ambiguous -%}
{%- for side in ('before', 'after') -%} {%- do parts.append(name(plan.prefix ~ '_ambiguous') ~ '(sent_' ~ side ~ ', readers, texts_' ~ side ~ ')') -%} {%- endfor -%}
{%- endif -%}
{%- if plan.images.may_be_ambiguous -%} {%- do parts.append("if(kind = 'row', ambiguous_columns, array())") -%} {%- endif -%}
concat({{ parts | join(', ') }})
{%- endmacro -%}

{%- macro meta_value(entry) -%}
{%- if entry.members -%} {{ name(entry.column) }}
{%- elif entry.new -%} nullif({{ given(entry.value) }}, {{ given(entry.new) }})
{%- elif entry.value | length == 1 -%} {{ plain(entry.value) }}
{%- else -%} {{ given(entry.value) }}
{%- endif -%}
{%- endmacro -%}

{#- The columns whose values could not be read. -#}
{%- macro columns_as_sent(plan) -%}
{%- set not_read -%} concat(unread_columns(sent_before, readers, texts_before), unread_columns(sent_after, readers, texts_after)) {%- endset -%}
{%- if not plan.images.tell_unfit -%} {{ not_read }}
{%- elif plan.values.readers -%} concat({{ not_read }}, if(kind = 'row', unfit_columns, array()))
{%- else -%} if(kind = 'row', unfit_columns, array())
{%- endif -%}
{%- endmacro -%}
