//! Each rule of the lint, broken once and kept once.

use super::*;

/// A schema with one property named `p`.
fn property(schema: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"p":{schema}}}}}"#)
}

#[test]
fn schemas() {
    let top = |member: &str| format!(r#"{{"type":"object","properties":{{}},"{member}":[]}}"#);
    let member = |place: &str, member| Fault::Member { place: place.into(), member };
    let cases: Vec<(String, Result<(), Fault>)> = vec![
        (r#"{"type":"object","properties":{}}"#.into(), Ok(())),
        (r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#.into(), Ok(())),
        (property("{}"), Ok(())),
        (property(r#"{"type":"string","description":"text","enum":["a"],"default":"a","minLength":1}"#), Ok(())),
        (property(r#"{"type":"array","items":{}}"#), Ok(())),
        (property(r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#), Ok(())),
        (property(r#"{"type":"object","additionalProperties":{"type":"number"}}"#), Ok(())),
        // Names of properties are not members of a schema.
        (r#"{"type":"object","properties":{"format":{},"const":{},"type":{"type":"string"},"$ref":{},"enum":{},"items":{}}}"#.into(), Ok(())),
        (property(r#"{"type":"string","default":{"format":1,"type":[]}}"#), Ok(())),
        ("true".into(), Err(Fault::NotObject)),
        ("{}".into(), Err(Fault::NotObject)),
        (r#"{"type":"object"}"#.into(), Err(Fault::NotObject)),
        (r#"{"properties":{}}"#.into(), Err(Fault::NotObject)),
        (r#"{"type":"array","properties":{}}"#.into(), Err(Fault::NotObject)),
        (r#"{"type":["object"],"properties":{}}"#.into(), Err(Fault::NotObject)),
        (r#"{"type":"object","properties":[]}"#.into(), Err(Fault::NotObject)),
        (top("anyOf"), Err(Fault::TopLevel("anyOf"))),
        (top("oneOf"), Err(Fault::TopLevel("oneOf"))),
        (top("allOf"), Err(Fault::TopLevel("allOf"))),
        (top("enum"), Err(Fault::TopLevel("enum"))),
        (top("not"), Err(Fault::TopLevel("not"))),
        (property("true"), Err(Fault::NotSchema("/properties/p".into()))),
        (property("null"), Err(Fault::NotSchema("/properties/p".into()))),
        (property(r#"{"anyOf":[true]}"#), Err(Fault::NotSchema("/properties/p/anyOf/0".into()))),
        (property(r#"{"additionalProperties":1}"#), Err(Fault::NotSchema("/properties/p/additionalProperties".into()))),
        (property(r#"{"type":["string","null"]}"#), Err(Fault::TypeNotOne("/properties/p".into()))),
        (property(r#"{"type":null}"#), Err(Fault::TypeNotOne("/properties/p".into()))),
        (property(r#"{"type":"array"}"#), Err(Fault::Items("/properties/p".into()))),
        (property(r#"{"type":"array","items":true}"#), Err(Fault::Items("/properties/p".into()))),
        (property(r#"{"type":"array","items":[{}]}"#), Err(Fault::Items("/properties/p".into()))),
        (property(r##"{"$ref":"#/$defs/x"}"##), Err(member("/properties/p", "$ref"))),
        (property(r#"{"type":"array","items":{"properties":{"q":{"format":"date"}}}}"#), Err(member("/properties/p/items/properties/q", "format"))),
        (property(r#"{"const":1}"#), Err(member("/properties/p", "const"))),
        (property(r#"{"prefixItems":[]}"#), Err(member("/properties/p", "prefixItems"))),
        (property(r#"{"patternProperties":{}}"#), Err(member("/properties/p", "patternProperties"))),
        (r#"{"type":"object","properties":{},"$defs":{"x":{"const":1}}}"#.into(), Err(member("/$defs/x", "const"))),
    ];
    for (input_schema, expected) in cases {
        let tool = Tool { input_schema: input_schema.clone(), ..tool("name", Profile::Core) };
        assert_eq!(check(&tool).map(|_| ()), expected, "{input_schema}");
    }
    let broken = Tool { input_schema: "{".into(), ..tool("name", Profile::Core) };
    assert!(matches!(check(&broken), Err(Fault::NotJson(_))));
}

#[test]
fn names() {
    let longest = "a".repeat(40);
    for name in ["a", "loop_setPhase", "a1_B2", &longest] {
        assert!(check(&tool(name, Profile::Core)).is_ok(), "{name:?}");
    }
    let too_long = "a".repeat(41);
    for name in ["", "A", "_a", "1a", "a-b", "a.b", "a/b", "a b", "ä", "aä", &too_long] {
        assert_eq!(check(&tool(name, Profile::Core)), Err(Fault::Name), "{name:?}");
    }
}

#[test]
fn descriptions() {
    let with = |description: String| check(&Tool { description, ..tool("name", Profile::Core) }).map(|_| ());
    assert_eq!(with(" \n".into()), Err(Fault::DescriptionBlank));
    assert_eq!(with("x".repeat(TEXT_BYTES_MAX)), Ok(()));
    assert_eq!(with("x".repeat(TEXT_BYTES_MAX + 1)), Err(Fault::DescriptionLong(TEXT_BYTES_MAX + 1)));
    assert_eq!(with("ä".repeat(1001)), Err(Fault::DescriptionLong(2002)));
}

#[test]
fn one_bad_tool_hides_itself_alone() {
    let bad = Tool { input_schema: property("true"), ..tool("bad", Profile::Core) };
    let first = Tool { title: "first".into(), ..tool("one", Profile::Core) };
    let second = Tool { title: "second".into(), ..tool("one", Profile::Core) };
    let (fit, left_out) = lint(vec![first, bad, second, tool("two", Profile::All)]);
    let fit: Vec<_> = fit.iter().map(|fit| fit.tool.title.as_str()).collect();
    assert_eq!(fit, ["first", "The two"]);
    let left_out: Vec<_> = left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        left_out,
        [
            r#"tool "bad" is left out of the list: the schema at `/properties/p` is not an object"#,
            r#"tool "one" is left out of the list: the name is taken by a tool before it"#,
        ]
    );
}
