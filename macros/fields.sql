{#- Fields of a message: values, conditions, the op, times and order numbers. -#}

{%- macro field(path) -%} m{% for part in path %}.{{ name(part) }}{% endfor %} {%- endmacro -%}

{#- The first of some expressions that is not null. The caller prints the expression of one item:
    {% call(path) first_of(paths) %}{{ field(path) }}{% endcall %} -#}
{%- macro first_of(items) -%}
{%- if items | length == 1 -%} {{ caller(items[0]) }}
{%- else -%} coalesce({% for item in items %}{{ caller(item) }}{{ ', ' if not loop.last }}{% endfor %})
{%- endif -%}
{%- endmacro -%}

{%- macro first_field(paths) -%} {%- call(path) first_of(paths) -%} {{ field(path) }} {%- endcall -%} {%- endmacro -%}

{%- macro one_of(texts) -%}
{%- if texts | length == 1 -%} = {{ text(texts[0]) }} {%- else -%} in ({{ texts | map('sql_text') | join(', ') }}) {%- endif -%}
{%- endmacro -%}

{#- A text with a * at its end stands for all that begin with what is before it. -#}
{%- macro fits(expression, wanted) -%}
{%- if wanted[-1:] == '*' -%} startswith({{ expression }}, {{ text(wanted[:-1]) }}) {%- else -%} {{ expression }} = {{ text(wanted) }} {%- endif -%}
{%- endmacro -%}


{#- Values ------------------------------------------------------------------------------------------------------------------------ -#}

{#- The first choice that gives a text; '' does not. -#}
{%- macro given(value) -%}
{%- if not value -%} cast(null as string)
{%- else -%} {%- call(choice) first_of(value) -%} nullif({{ plain([choice]) }}, '') {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{%- macro plain(value) -%}
{%- if not value -%} cast(null as string)
{%- else -%} {%- call(choice) first_of(value) -%} {{ choice_of_value(choice) }} {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{%- macro choice_of_value(choice) -%}
{%- if choice.by is defined -%} {%- call(value) switch(choice) -%} {{ given(value) }} {%- endcall -%}
{%- elif choice.pattern -%} {%- call with_dots(choice) -%} nullif(regexp_extract({{ rest_of(choice) }}, {{ text(choice.pattern) }}, 1), '') {%- endcall -%}
{%- else -%} {%- call with_dots(choice) -%} {{ rest_of(choice) }} {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{#- A part of a name in which another character stands for a dot. The caller prints the part. -#}
{%- macro with_dots(choice) -%}
{%- if choice.dot -%} replace({{ caller() }}, {{ text(choice.dot) }}, '.') {%- else -%} {{ caller() }} {%- endif -%}
{%- endmacro -%}

{#- A field's text, without the text that stands before it. -#}
{%- macro rest_of(choice) -%}
{%- set sent = known(field(choice.path), choice.unknown) -%}
{%- if choice.behind -%} if(startswith({{ sent }}, {{ field(choice.behind) }}), substr({{ sent }}, length({{ field(choice.behind) }}) + 1), null)
{%- else -%} {{ sent }}
{%- endif -%}
{%- endmacro -%}

{%- macro known(expression, unknown) -%}
{%- if unknown -%} if({{ expression }} {{ one_of(unknown) }}, null, {{ expression }}) {%- else -%} {{ expression }} {%- endif -%}
{%- endmacro -%}

{#- A value chosen by another, in any case of letters. The caller prints the value of a branch. -#}
{%- macro switch(choice) -%}
{%- set by -%} lower({{ plain(choice.by) }}) {%- endset -%}
case
    {%- for wanted, value in choice.cases.items() %} when {{ fits(by, wanted | lower) }} then {{ caller(value) }}{% endfor -%}
    {%- if choice.missing %} when {{ by }} is null then {{ caller(choice.missing) }}{% endif %} else {{ caller(choice.otherwise) }} end
{%- endmacro -%}

{#- A plain column of the contract; for some verdicts it has a value of their own. -#}
{%- macro column_value(column, zone) -%}
{%- if column.by_verdict -%}
case verdict{% for verdict, value in column.by_verdict.items() %} when {{ text(verdict) }} then {{ value_of(column, value, zone) }}{% endfor %} else {{ value_of(column, column.value, zone) }} end
{%- else -%} {{ value_of(column, column.value, zone) }}
{%- endif -%}
{%- endmacro -%}

{%- macro value_of(column, value, zone) -%}
{%- if column.is_time -%} {{ time(value, zone) }} {%- else -%} {{ given(value) }} {%- endif -%}
{%- endmacro -%}

{#- The text that two halves of an update share. -#}
{%- macro pair_id(plan) -%}
{%- if plan.verdicts.halves -%} case when kind = 'row' and verdict {{ one_of(plan.verdicts.halves) }} then {{ column_value(plan.columns['pair_id'], plan.zone) }} end
{%- else -%} cast(null as string)
{%- endif -%}
{%- endmacro -%}


{#- Times and order numbers --------------------------------------------------------------------------------------------------------- -#}

{#- An instant up to the year 9999; null if the field does not hold one. -#}
{%- macro time(value, zone) -%}
{%- if not value -%} cast(null as timestamp)
{%- else -%} {%- call(choice) first_of(value) -%} {{ choice_of_time(choice, zone) }} {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{%- macro choice_of_time(choice, zone) -%}
{%- if choice.by is defined -%} {%- call(value) switch(choice) -%} {{ time(value, zone) }} {%- endcall -%}
{%- else -%}
{%- set sent = field(choice.path) -%}
{%- set unknown -%}{% if choice.unknown %} and not {{ sent }} {{ one_of(choice.unknown) }}{% endif %}{%- endset -%}
{%- if choice.reader == 'epoch_s' -%}
timestamp_micros(if({{ sent }} rlike '^[0-9]{1,12}(?:\\.[0-9]{1,9})?$'{{ unknown }} and try_cast(substring_index({{ sent }}, '.', 1) as bigint) <= 253402300799, cast(cast(try_cast({{ sent }} as decimal(21,9)) * 1000000 as decimal(38,9)) as bigint), null))
{%- elif choice.reader == 'local' -%} {{ local_time(known(sent, choice.unknown), zone) }}
{%- else -%}
timestamp_millis(if({{ sent }} rlike '^[0-9]{1,15}$' and try_cast({{ sent }} as bigint) <= 253402300799999{{ unknown }}, try_cast({{ sent }} as bigint), null))
{%- endif -%}
{%- endif -%}
{%- endmacro -%}

{#- Local time in a zone, as an instant; null without a zone, and for a time that the zone's clocks skipped. -#}
{%- macro local_time(sent, zone) -%}
{%- if not zone -%} cast(null as timestamp)
{%- else -%} if({{ sent }} rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?$'{% if zone.may_skip %} and {{ was_there(sent, zone) }}{% endif %}, {{ in_zone(sent, zone) }}, null)
{%- endif -%}
{%- endmacro -%}

{#- The instant of a wall clock `YYYY-MM-DD HH:MM:SS[.f]` in a zone, or null. -#}
{%- macro in_zone(sent, zone) -%}
{%- if zone.offset is none -%}
try_cast(concat(replace({{ sent }}, 'T', ' '), {{ text(' ' ~ zone.name) }}) as timestamp)
{%- else -%}
timestamp_micros(unix_micros(try_cast({{ sent }} as timestamp)) {{ '-' if zone.is_ahead else '+' }} {{ zone.offset }})
{%- endif -%}
{%- endmacro -%}

{#- Whether a local time existed: a zone with daylight saving has gaps. -#}
{%- macro was_there(sent, zone) -%}
cast(from_utc_timestamp({{ in_zone('left(' ~ sent ~ ', 19)', zone) }}, {{ text(zone.name) }}) as string) = replace(left({{ sent }}, 19), 'T', ' ')
{%- endmacro -%}

{%- macro order_number(number, zone) -%}
{%- set sent = order_text(number, zone) -%}
if({{ sent }} rlike '^-?[0-9]{1,38}$', try_cast({{ sent }} as decimal(38,0)), null)
{%- endmacro -%}

{%- macro order_text(number, zone) -%}
{%- set sent = plain(number.value) -%}
{#- Several numbers are the whole text: it begins with the first. -#}
{%- if number.reader == 'numbers' and number.count > 1 -%} if({{ sent }} rlike '^[0-9]', get(regexp_extract_all({{ sent }}, '[0-9]+', 0), {{ number.index }}), null)
{%- elif number.reader == 'numbers' -%} get(regexp_extract_all({{ sent }}, '[0-9]+', 0), {{ number.index }})
{%- elif number.reader == 'local' -%} cast(unix_seconds({{ local_time(sent, zone) }}) as string)
{%- else -%} {{ sent }}
{%- endif -%}
{%- endmacro -%}

{#- The order numbers up to the first that is not known; none if one does not fit. -#}
{%- macro position(order, zone) -%}
{%- if order -%}
case{% for number in order if number.reader != 'local' %} when length({{ order_text(number, zone) }}) > 38 and {{ order_text(number, zone) }} rlike '^-?[0-9]{39,}$' then {{ numbers_up_to(0) }}{% endfor %}
    {%- for number in order %} when order_{{ loop.index }} is null then {{ numbers_up_to(loop.index0) }}{% endfor %} else {{ numbers_up_to(order | length) }} end
{%- else -%} {{ numbers_up_to(0) }}
{%- endif -%}
{%- endmacro -%}

{%- macro numbers_up_to(count) -%}
{%- if count -%} array({% for number in range(count) %}order_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %}) {%- else -%} cast(array() as array<decimal(38,0)>) {%- endif -%}
{%- endmacro -%}


{#- Op ---------------------------------------------------------------------------------------------------------------------------- -#}

{%- macro cases(op) -%}
{%- for line in op.first %}
      when {{ conditions(line) }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- for wanted, lines in op.cases.items() -%}
{%- for line in lines %}
      when {{ fits(plain(op.by), wanted) }}{{ and_conditions(line) }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- endfor -%}
{%- for line in op.missing %}
      when {{ plain(op.by) }} is null{{ and_conditions(line) }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- for line in op.otherwise %}
      when {{ plain(op.by) }} is not null{{ and_conditions(line) }} then {{ text(line.verdict) }}
{%- endfor -%}
{%- endmacro -%}

{%- macro and_conditions(line) -%}{% if line.conditions %} and {{ conditions(line) }}{% endif %}{%- endmacro -%}

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
{%- set statement = column_value(plan.columns['statement'], plan.zone) -%}
{%- if plan.verdicts.by_statement -%}
case
      {%- for verdict, ddl in plan.verdicts.ddl.items() %}
      when verdict = {{ text(verdict) }} then {{ ddl_op(ddl, statement) }}
      {%- endfor %}
      when split_part(verdict, ' ', 2) = 'by_statement' then {{ by_statement(statement) }}
      else split_part(verdict, ' ', 2) end
{%- else -%} split_part(verdict, ' ', 2) {%- endif -%}
{%- endmacro -%}

{%- macro ddl_op(ddl, statement) -%}
{%- set by -%} lower({{ plain(ddl.by) }}) {%- endset -%}
case
        {%- for wanted, op in ddl.cases.items() %}
        when {{ fits(by, wanted | lower) }} then {{ text(op) if op else by_statement(statement) }}
        {%- endfor %}
        else {{ text(ddl.otherwise) if ddl.otherwise else by_statement(statement) }} end
{%- endmacro -%}

{#- The op of a DDL from its statement's first words, after comments. -#}
{%- macro by_statement(statement) -%}
{%- set skipped -%} (?:\\s|/\\*.*?\\*/|--[^\\n]*+(?:\\n|$)|#[^\\n]*+(?:\\n|$)) {%- endset -%}
case
      when {{ statement }} rlike '(?is)^{{ skipped }}*+(?:create|drop){{ skipped }}++(?:(?:or{{ skipped }}++replace|unique|fulltext|spatial|online|offline|bitmap|clustered|nonclustered|columnstore){{ skipped }}++)*+index\\b' then 'index'
      else coalesce(element_at(
        map('create', 'create', 'alter', 'alter', 'drop', 'drop', 'truncate', 'truncate', 'rename', 'rename'),
        lower(regexp_extract({{ statement }}, '(?is)^{{ skipped }}*+([a-z]++)', 1))), 'other') end
{%- endmacro -%}

{%- macro phase(snapshots) -%}
{%- if snapshots -%} if(reason is null and verdict {{ one_of(snapshots) }}, 0, 1) {%- else -%} 1 {%- endif -%}
{%- endmacro -%}

{#- What was found, for each reason. -#}
{%- macro detail(plan) -%}
{%- set by = plan.verdicts.op_name -%}
{%- set found -%} concat({{ text(by ~ ': "') }}, {{ plain(plan.spec.op.by) }}, '" {%- endset -%}
case reason
    when 'no-op' then {{ text(by ~ ': missing') }}
    when 'unknown-op' then {{ found }}')
    when 'no-row-image' then {{ found }}, without a row')
    {%- if plan.columns['statement'].value %}
    when 'statement-without-rows' then {{ found }}, without a row; statement: ', {{ plain(plan.columns['statement'].value) }})
    {%- endif %}
    when 'row-not-an-object' then {{ found }}, with a row that is null or no object')
    when 'uneven-rows' then {{ found }}, with more rows before the change than after it')
    {%- for line in plan.verdicts.dead_letters if line.conditions %}
    when {{ text(line.op) }} then concat({% for c in line.conditions %}{{ text(c.path | join('.') ~ ': ') }}, coalesce(concat('"', {{ field(c.path) }}, '"'), 'missing'){{ ", ', ', " if not loop.last }}{% endfor %})
    {%- endfor %}
    when 'unknown-patch' then {{ found }}, with an update operator that is not known')
  end
{%- endmacro -%}
