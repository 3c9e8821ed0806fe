package wire

// The messages of the access log, down to the last string: most of it is only
// checked. A test compares them with the generated types' descriptors.
var (
	logsShape = shape{
		1: {asMessage, &logIdentifierShape},
		2: {asMessage, &httpLogsShape},
		3: {asMessage, &tcpLogsShape},
	}
	logIdentifierShape = shape{1: {asMessage, &nodeShape}, 2: {as: asText}}
	httpLogsShape      = shape{1: {asMessage, &httpLogShape}}
	httpLogShape       = shape{
		1: {asMessage, &logCommonShape},
		3: {asMessage, &logRequestShape},
		4: {asMessage, &logResponseShape},
	}
	tcpLogsShape = shape{1: {asMessage, &tcpLogShape}}
	tcpLogShape  = shape{1: {asMessage, &logCommonShape}, 2: {asMessage, &flatShape}}

	// logCommonShape is AccessLogCommon; 5 to 12 and 23 are times.
	logCommonShape = shape{
		2:  {asMessage, &addressShape},
		3:  {asMessage, &addressShape},
		4:  {asMessage, &tlsShape},
		5:  {asMessage, &flatShape},
		6:  {asMessage, &flatShape},
		7:  {asMessage, &flatShape},
		8:  {asMessage, &flatShape},
		9:  {asMessage, &flatShape},
		10: {asMessage, &flatShape},
		11: {asMessage, &flatShape},
		12: {asMessage, &flatShape},
		13: {asMessage, &addressShape},
		14: {asMessage, &addressShape},
		15: {as: asText},
		16: {asMessage, &logFlagsShape},
		17: {asMessage, &metadataShape},
		18: {as: asText},
		19: {as: asText},
		20: {asMessage, &addressShape},
		21: {asEntry, &anyEntryShape},
		22: {asEntry, &textEntryShape},
		23: {asMessage, &flatShape},
		25: {as: asText},
		26: {as: asText},
		28: {as: asText},
	}
	logFlagsShape = shape{13: {asMessage, &flatShape}}
	metadataShape = shape{1: {asEntry, &structEntryShape}, 2: {asEntry, &anyEntryShape}}

	// logRequestShape is HTTPRequestProperties.
	logRequestShape = shape{
		2:  {as: asText},
		3:  {as: asText},
		4:  {asMessage, &flatShape},
		5:  {as: asText},
		6:  {as: asText},
		7:  {as: asText},
		8:  {as: asText},
		9:  {as: asText},
		10: {as: asText},
		13: {asEntry, &textEntryShape},
	}
	// logResponseShape is HTTPResponseProperties.
	logResponseShape = shape{
		1: {asMessage, &flatShape},
		4: {asEntry, &textEntryShape},
		5: {asEntry, &textEntryShape},
		6: {as: asText},
	}
	tlsShape = shape{
		2: {asMessage, &flatShape},
		3: {as: asText},
		4: {asMessage, &certificateShape},
		5: {asMessage, &certificateShape},
		6: {as: asText},
		7: {as: asText},
	}
	certificateShape = shape{1: {asMessage, &altNameShape}, 2: {as: asText}, 3: {as: asText}}
	altNameShape     = shape{1: {as: asText}, 2: {as: asText}}

	textEntryShape = shape{1: {as: asText}, 2: {as: asText}}
)

// The messages of config.core.v3 that the access log refers to.
var (
	nodeShape = shape{
		1:  {as: asText},
		2:  {as: asText},
		3:  {asMessage, &structShape},
		4:  {asMessage, &localityShape},
		6:  {as: asText},
		7:  {as: asText},
		8:  {asMessage, &buildShape},
		9:  {asMessage, &extensionShape},
		10: {as: asText},
		11: {asMessage, &addressShape},
		12: {asEntry, &paramsEntryShape},
	}
	localityShape    = shape{1: {as: asText}, 2: {as: asText}, 3: {as: asText}}
	buildShape       = shape{1: {asMessage, &flatShape}, 2: {asMessage, &structShape}}
	extensionShape   = shape{1: {as: asText}, 2: {as: asText}, 3: {as: asText}, 4: {asMessage, &buildShape}, 6: {as: asText}}
	paramsEntryShape = shape{1: {as: asText}, 2: {asMessage, &paramsShape}}
	paramsShape      = shape{1: {asEntry, &textEntryShape}}

	addressShape  = shape{1: {asMessage, &socketShape}, 2: {asMessage, &pipeShape}, 3: {asMessage, &internalShape}}
	socketShape   = shape{2: {as: asText}, 4: {as: asText}, 5: {as: asText}, 7: {as: asText}}
	pipeShape     = shape{1: {as: asText}}
	internalShape = shape{1: {as: asText}, 2: {as: asText}}
)
