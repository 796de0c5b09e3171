{{ config(alias='moved') }} select * from {{ ref('changelog') }}
