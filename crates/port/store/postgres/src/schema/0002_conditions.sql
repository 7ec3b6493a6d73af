-- The body as a value that conditions look into; null when it holds what `jsonb` cannot (U+0000, half a surrogate
-- pair), so that one such document does not fail every search.
CREATE FUNCTION store_json(p_body text) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN p_body::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END $$;
