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

{#- The same for any of several texts. -#}
{%- macro fits_any(expression, wanted) -%}
{%- set exact, parts = [], [] -%}
{%- for one in wanted if one[-1:] != '*' -%} {%- do exact.append(one) -%} {%- endfor -%}
{%- if exact -%} {%- do parts.append(expression ~ ' ' ~ one_of(exact)) -%} {%- endif -%}
{%- for one in wanted if one[-1:] == '*' -%} {%- do parts.append(fits(expression, one)) -%} {%- endfor -%}
{{ parts | join(' or ') }}
{%- endmacro -%}


{#- Values ------------------------------------------------------------------------------------------------------------------------ -#}

{#- The first choice that gives a text; '' does not. -#}
{%- macro given(value) -%}
{%- if not value -%} cast(null as string)
{%- else -%} {%- call(choice) first_of(value) -%} {% if choice.by is defined %}{{ plain([choice]) }}{% else %}nullif({{ sent_text(choice) }}, ''){% endif %} {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{%- macro plain(value) -%}
{%- if not value -%} cast(null as string)
{%- else -%} {%- call(choice) first_of(value) -%} {{ choice_of_value(choice) }} {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{%- macro choice_of_value(choice) -%}
{%- if choice.by is defined -%} {%- call(value) switch(choice) -%} {{ given(value) }} {%- endcall -%}
{%- elif choice.pattern -%} nullif({{ sent_text(choice) }}, '')
{%- else -%} {{ sent_text(choice) }}
{%- endif -%}
{%- endmacro -%}

{#- What stands in a field, or in the part of it that the pattern takes. -#}
{%- macro sent_text(choice) -%}
{%- call with_dots(choice) -%}
{% if choice.may_lack_it %}if({{ rest_of(choice) }} rlike {{ text(choice.pattern) }}, {{ part_of(choice) }}, {{ known(field(choice.path), choice.unknown) }})
{%- elif choice.pattern %}{{ part_of(choice) }}{% else %}{{ rest_of(choice) }}{% endif %}
{%- endcall -%}
{%- endmacro -%}

{%- macro part_of(choice) -%} regexp_extract({{ rest_of(choice) }}, {{ text(choice.pattern) }}, 1) {%- endmacro -%}

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
{%- if unknown | length == 1 -%} nullif({{ expression }}, {{ text(unknown[0]) }})
{%- elif unknown -%} if({{ expression }} {{ one_of(unknown) }}, null, {{ expression }})
{%- else -%} {{ expression }}
{%- endif -%}
{%- endmacro -%}

{#- A value chosen by another, in any case of letters. The caller prints the value of a branch. -#}
{%- macro switch(choice) -%}
{%- set by -%} lower({{ plain(choice.by) }}) {%- endset -%}
case
    {%- for wanted, value in choice.groups() %}
    when {{ fits_any(by, wanted | map('lower') | list) }} then {{ caller(value) }}{% endfor -%}
    {%- if choice.missing and choice.missing != choice.otherwise %}
    when {{ by }} is null then {{ caller(choice.missing) }}{% endif %}
    else {{ caller(choice.otherwise) }} end
{%- endmacro -%}

{#- A plain column of the contract; for some verdicts it has a value of their own. -#}
{%- macro column_value(column, zone) -%}
{%- if column.by_verdict -%}
case{% for verdicts, value in column.groups %} when verdict {{ one_of(verdicts) }} then {{ value_of(column, value, zone) }}{% endfor %} else {{ value_of(column, column.value, zone) }} end
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

{#- What is unknown is told outside the function: a field as its argument costs nothing, an expression is computed for every row before. -#}
{%- macro choice_of_time(choice, zone) -%}
{%- if choice.by is defined -%} {%- call(value) switch(choice) -%} {{ time(value, zone) }} {%- endcall -%}
{%- else -%}
{%- set instant = instant_of(choice.reader, shifted(field(choice.path), choice.shift), zone) -%}
{{ 'if(' ~ field(choice.path) ~ ' ' ~ one_of(choice.unknown) ~ ', null, ' ~ instant ~ ')' if choice.unknown else instant }}
{%- endif -%}
{%- endmacro -%}

{%- macro instant_of(reader, sent, zone) -%}
{%- if reader == 'epoch_s' -%} instant_of_seconds({{ sent }})
{%- elif reader == 'epoch_us' -%} instant_of_microseconds({{ sent }})
{%- elif reader == 'epoch_ns' -%} instant_of_nanoseconds({{ sent }})
{%- elif reader == 'zoned' -%} instant_with_offset({{ sent }})
{%- elif reader == 'local' -%} {{ instant_here(sent, zone) }}
{%- else -%} instant_of_milliseconds({{ sent }})
{%- endif -%}
{%- endmacro -%}

{#- A number without its lowest bits. -#}
{%- macro shifted(sent, bits) -%}
{%- if bits -%} cast(shiftright(try_cast({{ sent }} as bigint), {{ bits }}) as string) {%- else -%} {{ sent }} {%- endif -%}
{%- endmacro -%}

{#- Local time in the zone of the source, as an instant. -#}
{%- macro instant_here(sent, zone) -%}
{%- if zone -%} {{ zone.function }}({{ sent }}) {%- else -%} cast(null as timestamp) {%- endif -%}
{%- endmacro -%}

{#- The function that reads local times, if the format has any. -#}
{%- macro time_functions(plan) -%}
{%- if plan.zone and plan.has_local_times %}
create function {{ plan.zone.function }}(
  clock string comment 'a local time, YYYY-MM-DD HH:MM:SS[.f]')
returns timestamp
comment 'The instant of a local time in the zone {{ plan.zone.name }}; null for another text, and for a time that the clocks there skipped.'
return {{ local_time('clock', plan.zone) }};
{% endif -%}
{%- endmacro -%}

{#- Local time in a zone, as an instant; null without a zone, and for a time that the zone's clocks skipped. -#}
{%- macro local_time(sent, zone) -%}
{%- if not zone -%} cast(null as timestamp)
{%- else -%} if({{ sent }} rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?\\z'{% if zone.may_skip %} and {{ was_there(sent, zone) }}{% endif %}, {{ in_zone(sent, zone) }}, null)
{%- endif -%}
{%- endmacro -%}

{#- The instant of a wall clock `YYYY-MM-DD HH:MM:SS[.f]` in a zone, or null. -#}
{%- macro in_zone(sent, zone) -%}
{%- call in_years() -%}
{%- if zone.offset is none -%}
try_cast(concat(replace({{ sent }}, 'T', ' '), {{ text(' ' ~ zone.name) }}) as timestamp)
{%- else -%}
timestamp_micros(unix_micros(try_cast({{ sent }} as timestamp)) {{ '-' if zone.is_ahead else '+' }} {{ zone.offset }})
{%- endif -%}
{%- endcall -%}
{%- endmacro -%}

{#- The timestamp that the caller prints, or null if it is not in the years 1 to 9999. -#}
{%- macro in_years() -%}
get(filter(array({{ caller() }}), t -> t between timestamp'0001-01-01 00:00:00Z' and timestamp'9999-12-31 23:59:59.999999Z'), 0)
{%- endmacro -%}

{#- Whether a local time existed: a zone with daylight saving has gaps. -#}
{%- macro was_there(sent, zone) -%}
cast(from_utc_timestamp({{ in_zone('left(' ~ sent ~ ', 19)', zone) }}, {{ text(zone.name) }}) as string) = replace(left({{ sent }}, 19), 'T', ' ')
{%- endmacro -%}

{#- An order number as text. -#}
{%- macro order_text(value, index, zone) -%}
{%- if not value -%} cast(null as string)
{%- else -%} {%- call(choice) first_of(value) -%} {{ choice_of_order(choice, index, zone) }} {%- endcall -%}
{%- endif -%}
{%- endmacro -%}

{%- macro choice_of_order(choice, index, zone) -%}
{%- if choice.by is defined -%} {%- call(value) switch(choice) -%} {{ order_text(value, index, zone) }} {%- endcall -%}
{%- else -%}
{%- set sent = choice_of_value(choice) -%}
{%- if index >= choice.count or choice.reader == 'local' and not zone -%} cast(null as string)
{%- elif choice.reader == 'last_numbers' -%} get(slice(regexp_extract_all({{ sent }}, '[0-9]+', 0), -{{ choice.count }}, {{ choice.count }}), {{ index }})
{#- Several numbers are the whole text: it begins with the first. -#}
{%- elif choice.count > 1 -%} if({{ sent }} rlike '^[0-9]', get(regexp_extract_all({{ sent }}, '[0-9]+', 0), {{ index }}), null)
{%- elif choice.reader == 'numbers' -%} get(regexp_extract_all({{ sent }}, '[0-9]+', 0), {{ index }})
{%- elif choice.reader == 'lsn' -%} number_of_lsn({{ sent }})
{%- elif choice.reader == 'second' -%} second_of_number({{ sent }})
{%- elif choice.reader == 'within_second' -%} number_within_second({{ sent }})
{%- elif choice.reader == 'text' -%} {{ sent }}
{%- else -%} cast(unix_seconds({{ choice_of_time(choice, zone) }}) as string)
{%- endif -%}
{%- endif -%}
{%- endmacro -%}

{#- The order numbers up to the first that is not known; none if one does not fit. -#}
{%- macro position(order, zone) -%}
{%- if order -%} order_position(array({% for number in order %}{{ order_text(number.value, number.index, zone) }}{{ ', ' if not loop.last }}{% endfor %}))
{%- else -%} cast(array() as array<decimal(38,0)>)
{%- endif -%}
{%- endmacro -%}


{#- Op ---------------------------------------------------------------------------------------------------------------------------- -#}

{#- What a message is: the first line that fits it. -#}
{%- macro verdict(op) -%}
{%- set first = [] -%}
{%- for line in op.empty -%} {%- do first.append(when('raw is null' ~ and_conditions(line), line)) -%} {%- endfor -%}
{%- for line in op.first -%} {%- do first.append(when(conditions(line), line)) -%} {%- endfor -%}
{%- set last = last_cases(op) -%}
{%- set between = '\n      ' -%}
{%- if op.is_switch -%}
{%- set cases = [] -%}
{%- for texts, line in op.groups() -%}
{%- for one in texts -%} {%- do cases.append('when ' ~ text(one) ~ ' then ' ~ text(line.verdict)) -%} {%- endfor -%}
{%- endfor -%}
coalesce(
      case {{ first | join(between) }} end,
      case {{ plain(op.by) }}
        {{ cases | in_lines(8, ' ') }} end
      {%- if last | trim %},
      case {{ last | trim }} end{% endif %})
{%- else -%}
{%- for texts, line in op.groups() -%}
{%- do first.append(when(fits_any(plain(op.by), texts) ~ and_conditions(line), line)) -%}
{%- endfor -%}
case
      {{ first | join(between) }}
      {{- last }} end
{%- endif -%}
{%- endmacro -%}

{%- macro when(condition, line) -%} when {{ condition }} then {{ text(line.verdict) }} {%- endmacro -%}

{#- The lines for messages that fit no case. -#}
{%- macro last_cases(op) -%}
{%- if op.misses_as_others -%}
{%- for line in op.otherwise %}
      {{ when(conditions(line) or 'true', line) }}
{%- endfor -%}
{%- else -%}
{%- for line in op.missing %}
      {{ when(plain(op.by) ~ ' is null' ~ and_conditions(line), line) }}
{%- endfor -%}
{%- for line in op.otherwise %}
      {{ when(plain(op.by) ~ ' is not null' ~ and_conditions(line), line) }}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}

{%- macro and_conditions(line) -%}{% if line.conditions %} and {{ conditions(line) }}{% endif %}{%- endmacro -%}

{%- macro conditions(line) -%}
{%- for c in line.conditions -%}
{{ ' and ' if not loop.first }}
{%- if c.test == 'is' -%} {{ field(c.path) }} {{ one_of(c.texts) }}
{%- elif c.test == 'is_not' -%} not coalesce({{ field(c.path) }} {{ one_of(c.texts) }}, false)
{%- elif c.test == 'has' -%} {{ field(c.path) }} is not null
{%- elif c.test == 'holds' -%} size({{ field(c.path) }}) > 0
{%- else -%} {{ field(c.path) }} is null
{%- endif -%}
{%- endfor -%}
{%- endmacro -%}

{#- An empty statement is of the same op as none, so that one field can be the argument as it is. -#}
{%- macro op_of(plan) -%}
{%- set column = plan.columns['statement'] -%}
{%- set statement = column_value(column, plan.zone) if column.by_verdict or column.value | length > 1 else plain(column.value) -%}
case
      {%- for verdict, ddl in plan.verdicts.ddl.items() %}
      when verdict = {{ text(verdict) }} then {{ ddl_op(ddl, statement) }}
      {%- endfor %}
      {%- if plan.verdicts.by_statement %} when verdict like '% by\\_statement%' then op_of_statement({{ statement }}){% endif %} when reason is null then substring_index(substring_index(verdict, ' ', 2), ' ', -1) end
{%- endmacro -%}

{%- macro ddl_op(ddl, statement) -%}
{%- set by -%} lower({{ plain(ddl.by) }}) {%- endset -%}
case
        {%- for wanted, op in ddl.groups() %}
        when {{ fits_any(by, wanted | map('lower') | list) }} then {{ text(op) if op else 'op_of_statement(' ~ statement ~ ')' }}
        {%- endfor %}
        else {{ text(ddl.otherwise) if ddl.otherwise else 'op_of_statement(' ~ statement ~ ')' }} end
{%- endmacro -%}

{#- What was found, for each reason. -#}
{%- macro detail(plan) -%}
{%- set found -%} found_in_message(reason, {{ text(plan.verdicts.op_name) }}, {{ plain(plan.spec.op.by) }}, {{ plain(plan.columns['statement'].value) }}) {%- endset -%}
{%- set refused = plan.verdicts.dead_letters | selectattr('detail_paths') | list -%}
{%- if not refused -%} {{ found }}
{%- else -%}
case reason
    {%- for line in refused %}
    when {{ text(line.op) }} then concat({% for path in line.detail_paths %}{{ text(path | join('.') ~ ': ') }}, coalesce(concat('"', {{ field(path) }}, '"'), 'missing'){{ ", ', ', " if not loop.last }}{% endfor %})
    {%- endfor %}
    else {{ found }} end
{%- endif -%}
{%- endmacro -%}
