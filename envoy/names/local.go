package names

// DetailsPrefix begins the details of every immediate response that the service
// gives (none at all is as good). An immediate response is a local reply to
// Envoy: by its details the listener tells it from Envoy's own answers, whose
// bodies it replaces.
const DetailsPrefix = "crossdoor"

// FilterDirect removes, when the service is down and the policy says
// `on_service_down: {direct: …}`, what the platform must not get.
const FilterDirect = "crossdoor.direct"
