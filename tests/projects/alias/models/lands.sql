-- Its own name is the alias of another, which names itself by it.
{{ config(alias='staged') }} select id as land, name from {{ ref('staged') }}
