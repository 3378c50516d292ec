//! `compose.yml` as far as it can be checked without Docker: that what it mounts is there, that
//! each part finds the others, and that nothing is open to other machines.

use serde_json::Value;

use super::dashboards::{array, text};
use super::{kit, yaml};

fn services() -> Value {
    yaml(&kit("compose.yml"))["services"].clone()
}

/// What is mounted from this folder, and where.
fn mounts(service: &Value) -> Vec<(&str, &str)> {
    let volumes = array(&service["volumes"]).iter().map(|volume| text(volume));
    let of_kit = volumes.filter_map(|volume| volume.strip_prefix("./"));
    of_kit.map(|mount| mount.strip_suffix(":ro").unwrap().split_once(':').unwrap()).collect()
}

/// A file in a container, as a file of this folder.
#[track_caller]
fn is_mounted(service: &Value, path: &str) {
    let found = mounts(service).into_iter().any(|(here, there)| {
        path.strip_prefix(there).is_some_and(|rest| {
            let file = kit(&format!("{here}{rest}"));
            file.exists()
        })
    });
    assert!(found, "{path} is not mounted, or not there");
}

fn flag<'a>(service: &'a Value, name: &str) -> &'a str {
    let flags = array(&service["command"]).iter().map(|flag| text(flag));
    flags.filter_map(|flag| flag.strip_prefix(name)?.strip_prefix('=')).next().unwrap()
}

#[test]
fn what_is_mounted_is_there() {
    let services = services();
    for (name, service) in services.as_object().unwrap() {
        for (here, _) in mounts(service) {
            assert!(kit(here).exists(), "{name}: {here}");
        }
        let built = service.get("build").map(|build| kit("..").join(text(&build["dockerfile"])));
        assert!(built.is_none_or(|file| file.exists()), "{name}");
    }
    let alertmanager = &services["alertmanager"];
    is_mounted(&services["prometheus"], flag(&services["prometheus"], "--config.file"));
    is_mounted(&services["prometheus"], "/etc/prometheus/rules/alerts.yml");
    is_mounted(alertmanager, flag(alertmanager, "--config.file"));
    let grafana = &services["grafana"];
    let home = &grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"];
    is_mounted(grafana, text(home));
    let providers = yaml(&kit("provisioning/dashboards/dedupwatch.yml"));
    let folder = text(&providers["providers"][0]["options"]["path"]);
    is_mounted(grafana, &format!("{folder}/service.json"));
    is_mounted(grafana, "/etc/grafana/provisioning/datasources/prometheus.yml");
}

#[test]
fn each_finds_the_others_and_other_machines_find_none() {
    let services = services();
    for (name, service) in services.as_object().unwrap() {
        assert_eq!(service["network_mode"], "host", "{name}");
    }
    let prometheus = flag(&services["prometheus"], "--web.listen-address");
    let alertmanager = flag(&services["alertmanager"], "--web.listen-address");
    let grafana = text(&services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"]);
    for address in [prometheus, alertmanager, grafana] {
        assert!(address.starts_with("127.0.0.1"), "{address}");
    }
    assert_eq!(flag(&services["alertmanager"], "--cluster.listen-address"), "");
    let source = yaml(&kit("provisioning/datasources/prometheus.yml"));
    assert_eq!(source["datasources"][0]["url"], format!("http://{prometheus}"));
    let config = yaml(&kit("prometheus/prometheus.yml"));
    let told = &config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"][0];
    assert_eq!(told, alertmanager);
    let scraped = &config["scrape_configs"][0]["static_configs"][0]["targets"][0];
    let listens = dedupwatch::config::Config::default().listen;
    assert_eq!(scraped, &listens.to_string());
    assert_eq!(config["global"]["external_labels"]["dedupwatch"], format!("http://{listens}"));
}
