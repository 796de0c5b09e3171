{#- Fields of a message: values, conditions, the op, times and order numbers. -#}

{%- macro field(path) -%} m{% for part in path %}.{{ name(part) }}{% endfor %} {%- endmacro -%}

{%- macro first_of(expressions) -%}
{%- if expressions | length == 1 -%} {{ expressions[0] }} {%- else -%} coalesce({{ expressions | join(', ') }}) {%- endif -%}
{%- endmacro -%}

{%- macro first_field(paths) -%}
{%- if paths | length == 1 -%} {{ field(paths[0]) }} {%- else -%} coalesce({% for path in paths %}{{ field(path) }}{{ ', ' if not loop.last }}{% endfor %}) {%- endif -%}
{%- endmacro -%}

{%- macro one_of(texts) -%}
{%- if texts | length == 1 -%} = {{ text(texts[0]) }} {%- else -%} in ({{ texts | map('sql_text') | join(', ') }}) {%- endif -%}
{%- endmacro -%}

{#- A text with a * at its end stands for all that begin with what is before it. -#}
{%- macro fits(expression, wanted) -%}
{%- if wanted[-1:] == '*' -%} startswith({{ expression }}, {{ text(wanted[:-1]) }}) {%- else -%} {{ expression }} = {{ text(wanted) }} {%- endif -%}
{%- endmacro -%}


{#- Values ------------------------------------------------------------------------------------------------------------------------ -#}

{#- The first choice that gives a text; '' gives none. -#}
{%- macro given(value) -%}
{%- if not value -%} cast(null as string)
{%- elif value | length == 1 -%} nullif({{ plain(value) }}, '')
{%- else -%} coalesce({% for choice in value %}nullif({{ plain([choice]) }}, ''){{ ', ' if not loop.last }}{% endfor %})
{%- endif -%}
{%- endmacro -%}

{%- macro plain(value) -%}
{%- if not value -%} cast(null as string)
{%- elif value | length > 1 -%} coalesce({% for choice in value %}{{ plain([choice]) }}{{ ', ' if not loop.last }}{% endfor %})
{%- elif value[0].by is defined -%} {{ switch(value[0], 'given') }}
{%- elif value[0].pattern -%} {{ with_dots(value[0], 'nullif(regexp_extract(' ~ rest_of(value[0]) ~ ', ' ~ text(value[0].pattern) ~ ", 1), '')") }}
{%- else -%} {{ with_dots(value[0], rest_of(value[0])) }}
{%- endif -%}
{%- endmacro -%}

{#- A part of a name in which something stands for a dot. -#}
{%- macro with_dots(choice, sent) -%}
{%- if choice.dot -%} replace({{ sent }}, {{ text(choice.dot) }}, '.') {%- else -%} {{ sent }} {%- endif -%}
{%- endmacro -%}

{#- A field's text, without what stands before it. -#}
{%- macro rest_of(choice) -%}
{%- set sent = known(field(choice.path), choice.unknown) -%}
{%- if choice.behind -%} if(startswith({{ sent }}, {{ field(choice.behind) }}), substr({{ sent }}, length({{ field(choice.behind) }}) + 1), null)
{%- else -%} {{ sent }}
{%- endif -%}
{%- endmacro -%}

{%- macro known(expression, unknown) -%}
{%- if unknown -%} if({{ expression }} {{ one_of(unknown) }}, null, {{ expression }}) {%- else -%} {{ expression }} {%- endif -%}
{%- endmacro -%}

{#- A value chosen by another, in any case of letters; `as` names the macro that prints the branches. -#}
{%- macro switch(choice, as, zone=none) -%}
{%- set by = 'lower(' ~ plain(choice.by) ~ ')' -%}
case
    {%- for wanted, value in choice.cases.items() %} when {{ fits(by, wanted | lower) }} then {{ branch(value, as, zone) }}{% endfor -%}
    {%- if choice.missing %} when {{ by }} is null then {{ branch(choice.missing, as, zone) }}{% endif %} else {{ branch(choice.otherwise, as, zone) }} end
{%- endmacro -%}

{%- macro branch(value, as, zone) -%}
{%- if as == 'time' -%} {{ time(value, zone) }} {%- else -%} {{ given(value) }} {%- endif -%}
{%- endmacro -%}

{#- A plain column of the contract; some lines may have a value of their own for it. -#}
{%- macro column_value(plan, column) -%}
{%- set lines = plan.overriding(column) -%}
{%- if lines -%}
case verdict{% for line in lines %} when {{ text(line.verdict) }} then {{ value_of(line.columns[column], column, plan) }}{% endfor %} else {{ value_of(plan.spec.columns.get(column), column, plan) }} end
{%- else -%} {{ value_of(plan.spec.columns.get(column), column, plan) }}
{%- endif -%}
{%- endmacro -%}

{%- macro value_of(value, column, plan) -%}
{%- if column in ('event_time', 'produced_at') -%} {{ time(value, plan.zone) }}
{%- else -%} {{ given(value) }}
{%- endif -%}
{%- endmacro -%}

{#- The shared text of two halves of an update. -#}
{%- macro pair_id(plan) -%}
{%- if plan.halves -%} case when kind = 'row' and verdict {{ one_of(plan.halves) }} then {{ column_value(plan, 'pair_id') }} end {%- else -%} cast(null as string) {%- endif -%}
{%- endmacro -%}


{#- Times and order numbers --------------------------------------------------------------------------------------------------------- -#}

{#- An instant up to the year 9999; null if the field does not hold one. -#}
{%- macro time(value, zone) -%}
{%- if not value -%} cast(null as timestamp)
{%- elif value | length > 1 -%} coalesce({% for choice in value %}{{ time([choice], zone) }}{{ ', ' if not loop.last }}{% endfor %})
{%- elif value[0].by is defined -%} {{ switch(value[0], 'time', zone) }}
{%- else -%}
{%- set sent = field(value[0].path) -%}
{%- set unknown = (' and not ' ~ sent ~ ' ' ~ one_of(value[0].unknown)) if value[0].unknown else '' -%}
{%- if value[0].reader == 'epoch_s' -%}
timestamp_micros(if({{ sent }} rlike '^[0-9]{1,12}(?:\\.[0-9]{1,9})?$'{{ unknown }} and try_cast(substring_index({{ sent }}, '.', 1) as bigint) <= 253402300799, cast(cast(try_cast({{ sent }} as decimal(21,9)) * 1000000 as decimal(38,9)) as bigint), null))
{%- elif value[0].reader == 'local' -%} {{ local_time(known(sent, value[0].unknown), zone) }}
{%- else -%}
timestamp_millis(if({{ sent }} rlike '^[0-9]{1,15}$' and try_cast({{ sent }} as bigint) <= 253402300799999{{ unknown }}, try_cast({{ sent }} as bigint), null))
{%- endif -%}
{%- endif -%}
{%- endmacro -%}

{#- Local time in a zone, as an instant; null without a zone, and for a time that never was there. -#}
{%- macro local_time(sent, zone) -%}
{%- if not zone -%} cast(null as timestamp)
{%- else -%} if({{ sent }} rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?$'{{ ' and ' ~ was_there(sent, zone) if '/' in zone }}, {{ in_zone(sent, zone) }}, null)
{%- endif -%}
{%- endmacro -%}

{#- The instant of a wall clock `YYYY-MM-DD HH:MM:SS[.f]` in a zone, or null. -#}
{%- macro in_zone(sent, zone) -%}
{%- if zone[0] in '+-' -%}
timestamp_micros(unix_micros(try_cast({{ sent }} as timestamp)) {{ '-' if zone[0] == '+' else '+' }} {{ (zone[1:3] | int * 60 + zone[4:6] | int) * 60000000 }})
{%- else -%}
try_cast(concat(replace({{ sent }}, 'T', ' '), {{ text(' ' ~ zone) }}) as timestamp)
{%- endif -%}
{%- endmacro -%}

{#- A zone with daylight saving has gaps: times that never were. -#}
{%- macro was_there(sent, zone) -%}
cast(from_utc_timestamp({{ in_zone('left(' ~ sent ~ ', 19)', zone) }}, {{ text(zone) }}) as string) = replace(left({{ sent }}, 19), 'T', ' ')
{%- endmacro -%}

{%- macro order_number(value, reader, number, plan) -%}
{%- set sent = order_text(value, reader, number, plan) -%}
if({{ sent }} rlike '^-?[0-9]{1,38}$', try_cast({{ sent }} as decimal(38,0)), null)
{%- endmacro -%}

{%- macro order_text(value, reader, number, plan) -%}
{#- Several numbers are the whole text: it begins with the first. -#}
{%- if reader == 'numbers' -%} {{ 'if(' ~ plain(value) ~ " rlike '^[0-9]', " if value[0].count > 1 }}get(regexp_extract_all({{ plain(value) }}, '[0-9]+', 0), {{ number }}){{ ', null)' if value[0].count > 1 }}
{%- elif reader == 'local' -%} cast(unix_seconds({{ local_time(plain(value), plan.zone) }}) as string)
{%- else -%} {{ plain(value) }}
{%- endif -%}
{%- endmacro -%}

{#- The order numbers up to the first that is not known; none if one does not fit. -#}
{%- macro position(plan) -%}
{%- set count = plan.order | length -%}
{%- if count -%}
case{% for value, reader, number in plan.order if reader != 'local' %} when length({{ order_text(value, reader, number, plan) }}) > 38 and {{ order_text(value, reader, number, plan) }} rlike '^-?[0-9]{39,}$' then {{ numbers_up_to(0) }}{% endfor %}
    {%- for known in range(count) %} when order_{{ known + 1 }} is null then {{ numbers_up_to(known) }}{% endfor %} else {{ numbers_up_to(count) }} end
{%- else -%} cast(array() as array<decimal(38,0)>)
{%- endif -%}
{%- endmacro -%}

{%- macro numbers_up_to(count) -%}
{%- if count -%} array({% for number in range(count) %}order_{{ number + 1 }}{{ ', ' if not loop.last }}{% endfor %}) {%- else -%} cast(array() as array<decimal(38,0)>) {%- endif -%}
{%- endmacro -%}


{#- Op ---------------------------------------------------------------------------------------------------------------------------- -#}

{%- macro cases(op) -%}
{%- for line in op.first %}
      when {{ conditions(line) }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- for wanted, lines in op.cases.items() -%}
{%- for line in lines %}
      when {{ fits(plain(op.by), wanted) }}{{ (' and ' ~ conditions(line)) if line.conditions }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- endfor -%}
{%- for line in op.missing %}
      when {{ plain(op.by) }} is null{{ (' and ' ~ conditions(line)) if line.conditions }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- for line in op.otherwise %}
      when {{ plain(op.by) }} is not null{{ (' and ' ~ conditions(line)) if line.conditions }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- endmacro -%}

{%- macro conditions(line) -%}
{%- for c in line.conditions -%}
{{ ' and ' if not loop.first }}
{%- if c.test == 'is' -%} {{ field(c.path) }} {{ one_of(c.texts) }}
{%- elif c.test == 'is_not' -%} not coalesce({{ field(c.path) }} {{ one_of(c.texts) }}, false)
{%- elif c.test == 'has' -%} {{ field(c.path) }} is not null
{%- else -%} {{ field(c.path) }} is null
{%- endif -%}
{%- endfor -%}
{%- endmacro -%}

{%- macro op_of(plan) -%}
{%- set word = "split_part(verdict, ' ', 2)" -%}
{%- if plan.lines | selectattr('op', 'none') | list -%}
case
      {%- for line in plan.ddl_switches %}
      when verdict = {{ text(line.verdict) }} then {{ ddl_op(line.ddl, plan) }}
      {%- endfor %}
      when {{ word }} = 'by_statement' then {{ by_statement(column_value(plan, 'statement')) }}
      else {{ word }} end
{%- else -%} {{ word }} {%- endif -%}
{%- endmacro -%}

{%- macro ddl_op(ddl, plan) -%}
case
        {%- for wanted, op in ddl.cases.items() %}
        when {{ fits('lower(' ~ plain(ddl.by) ~ ')', wanted | lower) }} then {{ text(op) if op else by_statement(column_value(plan, 'statement')) }}
        {%- endfor %}
        else {{ text(ddl.otherwise) if ddl.otherwise else by_statement(column_value(plan, 'statement')) }} end
{%- endmacro -%}

{#- The kind of a DDL from its statement's first words, behind comments. -#}
{%- macro by_statement(statement) -%}
{%- set skipped -%} (?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$)) {%- endset -%}
case
      when {{ statement }} rlike '(?is)^{{ skipped }}*+(?:create|drop){{ skipped }}++(?:(?:or{{ skipped }}++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore){{ skipped }}++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract({{ statement }}, '(?is)^{{ skipped }}*+([a-z]++)', 1))), 'other') end
{%- endmacro -%}

{%- macro phase(plan) -%}
{%- set snapshots = plan.lines | selectattr('phase', 'equalto', 0) | map(attribute='verdict') | unique | list -%}
{%- if snapshots -%} if(reason is null and verdict {{ one_of(snapshots) }}, 0, 1) {%- else -%} 1 {%- endif -%}
{%- endmacro -%}

{%- macro detail(spec) -%}
{%- set by -%} {% for choice in spec.op.by %}{{ choice.path | join('.') }}{{ ' or ' if not loop.last }}{% endfor %} {%- endset -%}
{%- set found -%} concat({{ text(by ~ ': "') }}, {{ plain(spec.op.by) }}, '" {%- endset -%}
case reason
    when 'no-op' then {{ text(by ~ ': missing') }}
    when 'unknown-op' then {{ found }}')
    when 'no-row-image' then {{ found }}, without a row')
    {%- if spec.columns.get('statement') %}
    when 'statement-without-rows' then {{ found }}, without a row; statement: ', {{ plain(spec.columns.get('statement')) }})
    {%- endif %}
    when 'row-not-an-object' then {{ found }}, with a row that is null or no object')
    when 'uneven-rows' then {{ found }}, with more rows before the change than after it')
    {%- for line in spec.op.lines() if line.kind == 'dead_letter' and line.conditions %}
    when {{ text(line.op) }} then concat({% for c in line.conditions %}{{ text(c.path | join('.') ~ ': ') }}, coalesce(concat('"', {{ field(c.path) }}, '"'), 'missing'){{ ", ', ', " if not loop.last }}{% endfor %})
    {%- endfor %}
    when 'unknown-patch' then {{ found }}, with an update operator that is not known')
  end
{%- endmacro -%}
