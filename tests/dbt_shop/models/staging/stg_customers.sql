with source as (

    {#-
    Here a table would be read that a loader fills.
    -#}
    select * from {{ ref('raw_customers') }}

),

renamed as (

    select
        id as customer_id,
        first_name,
        last_name

    from source

)

select * from renamed
