{#- SQL functions: how they are made, in a session, in a file to run, in a catalog. -#}

{%- macro temporary_function(function) -%} create temporary function {{ function.text }} {%- endmacro -%}
{%- macro temporary_function_dropped(function) -%} drop temporary function if exists {{ name(function.name) }} {%- endmacro -%}
