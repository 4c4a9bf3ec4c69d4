use super::*;

fn scenarios() -> Vec<Scenario> {
    let read = |name: &str| {
        let text = format!("about: All about {name}\napplications: [{name}]\nsteps: [check: {{}}]");
        Scenario::read(name, &text).unwrap()
    };
    ["a", "b", "c"].map(read).to_vec()
}

fn names(scenarios: &[Scenario]) -> Vec<&str> {
    scenarios.iter().map(|scenario| scenario.name.as_str()).collect()
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn scenarios_are_chosen_by_name() {
    assert_eq!(names(&chosen(scenarios(), &[]).unwrap()), ["a", "b", "c"]);
    assert_eq!(names(&chosen(scenarios(), &strings(&["c", "a"])).unwrap()), ["a", "c"]);
    let error = chosen(scenarios(), &strings(&["d"])).unwrap_err().to_string();
    assert_eq!(error, "there is no scenario d; there are a, b, c");
    let error = chosen(scenarios(), &strings(&["a", "a"])).unwrap_err().to_string();
    assert_eq!(error, "scenario a is named twice");
}

#[test]
fn the_list_and_the_last_line_are_as_promised() {
    assert_eq!(listed(&scenarios()[..1]), " scenario  what happens\n a         All about a");
    assert_eq!(last_line(28, 2), "cluster: 28 scenarios, 26 passed, 2 failed");
}
