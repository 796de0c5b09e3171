{#- Fields of a message: values, conditions, the op, times and order numbers. Each macro prints one expression from its arguments. -#}

{%- macro member(path) -%}{% for part in path %}.{{ name(part) }}{% endfor %}{%- endmacro -%}

{%- macro named(expression, column) -%} {{ expression }} as {{ column }} {%- endmacro -%}

{%- macro called(function, arguments) -%} {{ function }}({{ arguments | join(', ') }}) {%- endmacro -%}

{%- macro called_in_lines(function, arguments) -%}
{{ function }}(
      {{ arguments | join(',\n      ') }})
{%- endmacro -%}

{%- macro array_of(items) -%} array({{ items | join(', ') }}) {%- endmacro -%}

{%- macro first_of(items) -%} coalesce({{ items | join(', ') }}) {%- endmacro -%}

{%- macro null_of(type) -%} cast(null as {{ type }}) {%- endmacro -%}

{%- macro one_of(texts) -%}
{%- if texts | length == 1 -%} = {{ text(texts[0]) }} {%- else -%} in ({{ texts | map('sql_text') | join(', ') }}) {%- endif -%}
{%- endmacro -%}

{#- Conditions, each of an expression and texts. -#}
{%- macro is_one_of(expression, texts) -%} {{ expression }} {{ one_of(texts) }} {%- endmacro -%}
{%- macro is_none_of(expression, texts) -%} not coalesce({{ expression }} {{ one_of(texts) }}, false) {%- endmacro -%}
{%- macro is_there(expression, texts=()) -%} {{ expression }} is not null {%- endmacro -%}
{%- macro is_missing(expression, texts=()) -%} {{ expression }} is null {%- endmacro -%}
{%- macro holds(expression, texts=()) -%} size({{ expression }}) > 0 {%- endmacro -%}
{%- macro begins_with(expression, start) -%} startswith({{ expression }}, {{ text(start) }}) {%- endmacro -%}
{%- macro all_of(tests) -%} {{ tests | join(' and ') }} {%- endmacro -%}
{%- macro any_of(tests) -%} {{ tests | join(' or ') }} {%- endmacro -%}

{#- Results by the first condition that is true, or by the text of one expression. -#}
{%- macro when_then(pair) -%} when {{ pair[0] }} then {{ pair[1] }} {%- endmacro -%}
{%- macro whens(pairs) -%} {{ pairs | each('when_then') | join('\n      ') }} {%- endmacro -%}
{%- macro cases(pairs) -%} case {{ whens(pairs) }} end {%- endmacro -%}
{%- macro choice(pairs, otherwise) -%} case {{ whens(pairs) }} else {{ otherwise }} end {%- endmacro -%}
{%- macro simple_cases(by, pairs) -%} case {{ by }} {{ pairs | each('when_then') | in_lines(8, ' ') }} end {%- endmacro -%}
{%- macro first_of_cases(cases) -%} {{ called_in_lines('coalesce', cases) }} {%- endmacro -%}

{%- macro by_verdict(pairs, otherwise) -%}
case{% for verdicts, value in pairs %} when verdict {{ one_of(verdicts) }} then {{ value }}{% endfor %} else {{ otherwise }} end
{%- endmacro -%}


{#- Values ------------------------------------------------------------------------------------------------------------------------ -#}

{%- macro if_not(expression, unknown) -%} nullif({{ expression }}, {{ text(unknown) }}) {%- endmacro -%}

{%- macro if_none_of(expression, unknown, result) -%} if({{ expression }} {{ one_of(unknown) }}, null, {{ result }}) {%- endmacro -%}

{#- A field's text, without the text that stands before it. -#}
{%- macro text_behind(sent, before) -%} if(startswith({{ sent }}, {{ before }}), substr({{ sent }}, length({{ before }}) + 1), null) {%- endmacro -%}

{%- macro part_of_text(sent, pattern) -%} regexp_extract({{ sent }}, {{ text(pattern) }}, 1) {%- endmacro -%}

{%- macro part_or_whole(sent, pattern, part, whole) -%} if({{ sent }} rlike {{ text(pattern) }}, {{ part }}, {{ whole }}) {%- endmacro -%}

{#- A part of a name in which another character stands for a dot. -#}
{%- macro with_dots(part, dot) -%} replace({{ part }}, {{ text(dot) }}, '.') {%- endmacro -%}

{%- macro of_verdicts(verdicts, value) -%} case when kind = 'row' and verdict {{ one_of(verdicts) }} then {{ value }} end {%- endmacro -%}

{%- macro statement_of_ddl(statement) -%} case when kind = 'ddl' then {{ statement }} end {%- endmacro -%}


{#- Times and order numbers --------------------------------------------------------------------------------------------------------- -#}

{#- A number without its lowest bits. -#}
{%- macro shifted(sent, bits) -%} cast(shiftright(try_cast({{ sent }} as bigint), {{ bits }}) as string) {%- endmacro -%}

{#- Local time in a zone, as the instant that the caller prints; null for a time that the zone's clocks skipped. -#}
{%- macro local_time(sent, zone, instant) -%}
if({{ sent }} rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]{1,9})?\\z'{% if zone.may_skip %} and {{ was_there(sent, zone) }}{% endif %}, {{ instant }}, null)
{%- endmacro -%}

{#- The body of a function that reads local times. It has no lambda: calls of such a function are arguments of others. -#}
{%- macro instant_of_clock(zone) -%}
{{ local_time('clock', zone, 'instant_within_years(' ~ instant_at('clock', zone) ~ ')') }}
{%- endmacro -%}

{#- The instant of a wall clock `YYYY-MM-DD HH:MM:SS[.f]` in a zone, or null. -#}
{%- macro in_zone(sent, zone) -%} {%- call in_years() -%} {{ instant_at(sent, zone) }} {%- endcall -%} {%- endmacro -%}

{#- The same, also before the year 1 and after 9999. -#}
{%- macro instant_at(sent, zone) -%}
{%- if zone.offset is none -%}
try_cast(concat(replace({{ sent }}, 'T', ' '), {{ text(' ' ~ zone.name) }}) as timestamp)
{%- else -%}
timestamp_micros(unix_micros(try_cast({{ sent }} as timestamp)) {{ '-' if zone.is_ahead else '+' }} {{ zone.offset }})
{%- endif -%}
{%- endmacro -%}

{#- The timestamp that the caller prints, or null if it is not in the years 1 to 9999. -#}
{%- macro in_years() -%}
get(filter(array({{ caller() }}), t -> t between timestamp'0001-01-01 00:00:00Z' and timestamp'9999-12-31 23:59:59.999999Z'), 0)
{%- endmacro -%}

{#- Whether a local time existed: a zone with daylight saving has gaps. -#}
{%- macro was_there(sent, zone) -%}
cast(from_utc_timestamp({{ instant_at('left(' ~ sent ~ ', 19)', zone) }}, {{ text(zone.name) }}) as string) = replace(left({{ sent }}, 19), 'T', ' ')
{%- endmacro -%}

{#- Of the numbers at the end of a text, the one at an index. -#}
{%- macro last_number_in(sent, count, index) -%}
get(slice(regexp_extract_all({{ sent }}, '[0-9]+', 0), -{{ count }}, {{ count }}), {{ index }})
{%- endmacro -%}

{#- Several numbers are the whole text: it begins with the first. -#}
{%- macro number_in_list(sent, index) -%}
if({{ sent }} rlike '^[0-9]', get(regexp_extract_all({{ sent }}, '[0-9]+', 0), {{ index }}), null)
{%- endmacro -%}

{%- macro number_in(sent, index) -%} get(regexp_extract_all({{ sent }}, '[0-9]+', 0), {{ index }}) {%- endmacro -%}

{%- macro second_of(instant) -%} cast(unix_seconds({{ instant }}) as string) {%- endmacro -%}

{%- macro no_position() -%} cast(array() as array<decimal(38,0)>) {%- endmacro -%}

{%- macro unless_loaded(position) -%} if(op = 'snapshot', {{ no_position() }}, {{ position }}) {%- endmacro -%}


{#- Op ---------------------------------------------------------------------------------------------------------------------------- -#}

{%- macro is_by_statement() -%} verdict like '% by\\_statement%' {%- endmacro -%}

{#- What was found in messages that lines refuse: of each reason the names and values of fields. -#}
{%- macro detail_of_lines(lines, otherwise) -%}
case reason
    {%- for reason, fields in lines %}
    when {{ reason }} then concat({% for path, value in fields %}{{ text(path ~ ': ') }}, coalesce(concat('"', {{ value }}, '"'), 'missing'){{ ", ', ', " if not loop.last }}{% endfor %})
    {%- endfor %}
    else {{ otherwise }} end
{%- endmacro -%}
