package main_test

// A position is a place for a secret. client and server are what each sends:
// VALUE is the inside of a JSON string, "ID" a fresh id.
type position struct {
	name   string
	client string
	server string // "": nothing
	clear  bool   // an ordinary word here is kept in the spool, by design
}

const (
	okAnswer   = `{"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"done"}]}}`
	initialize = `{"jsonrpc":"2.0","id":"ID","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
)

// call is a tools/call with these arguments, which goes well.
func call(name, arguments string, clear bool) position {
	return request(name, `"tools/call","params":{"name":"a_tool","arguments":`+arguments+`}`, clear)
}

// request is one with this method and what follows it.
func request(name, method string, clear bool) position {
	return position{name, `{"jsonrpc":"2.0","id":"ID","method":` + method + `}`, okAnswer, clear}
}

// answered is a call with this answer.
func answered(name, answer string, clear bool) position {
	p := call(name, `{}`, clear)
	p.server = `{"jsonrpc":"2.0","id":"ID",` + answer + `}`
	return p
}

// positions are all places in the traffic that a client or a server fills.
var positions = []position{
	call("argument", `{"pane_id":"VALUE"}`, true),
	call("argument's name", `{"VALUE":1}`, true),
	call("nested argument", `{"a":{"b":[{"c":["VALUE"]}]}}`, true),
	call("nested name", `{"a":[{"VALUE":null}]}`, true),
	call("output_path", `{"output_path":"VALUE"}`, true),
	call("output_path with a directory", `{"output_path":"/srv/VALUE/x"}`, true),
	call("sensitive argument", `{"keys":"VALUE"}`, false),
	call("environment", `{"environment":{"A":"VALUE"}}`, false),
	call("environment's name", `{"environment":{"VALUE":"v"}}`, true),
	call("first of a duplicate", `{"a":"VALUE","a":"b"}`, true),
	call("last of a duplicate", `{"a":"b","a":"VALUE"}`, true),
	call("JSON in a string", `{"a":"{\"b\":\"VALUE\"}"}`, true),
	call("across the cut", `{"a":"`+filler+filler+`é VALUE"}`, true),
	call("name across the cut", `{"`+filler+filler+`é VALUE`+filler+`":1}`, true),
	call("beside NaN", `{"a":NaN,"b":"VALUE"}`, true),
	call("operation's tool", `{"operations":[{"tool":"VALUE","arguments":{}}]}`, true),
	call("operation's argument", `{"operations":[{"tool":"t","arguments":{"pane_id":"VALUE"}}]}`, true),
	call("operation's argument's name", `{"operations":[{"tool":"t","arguments":{"VALUE":1}}]}`, true),
	call("operation's member", `{"operations":[{"tool":"t","VALUE":1}]}`, true),
	call("operation in an operation", `{"operations":[{"tool":"t","arguments":{"operations":[{"tool":"VALUE"}]}}]}`, true),
	call("pane of keys", `{"operations":[{"keys":"k","pane_id":"VALUE"}]}`, true),
	call("arguments that are a string", `"VALUE"`, false),
	call("arguments that are a list", `["VALUE"]`, false),

	request("tool", `"tools/call","params":{"name":"VALUE","arguments":{}}`, true),
	request("tool that is a list", `"tools/call","params":{"name":["VALUE"]}`, false),
	request("tool twice", `"tools/call","params":{"name":"VALUE","name":null}`, true),
	request("variant of the tool's name", `"tools/call","params":{"name":"a_tool","Name":"VALUE"}`, true),
	request("method", `"VALUE"`, true),
	request("method with a slash", `"x/VALUE"`, true),
	request("method twice", `"VALUE","method":null`, true),
	request("variant of the method", `"tools/call","Method":"VALUE","params":{"name":"a_tool"}`, true),
	request("method that is skipped", `"VALUE/list"`, false),
	request("resource", `"resources/read","params":{"uri":"VALUE"}`, true),
	request("resource with a scheme", `"resources/subscribe","params":{"uri":"file:///srv/VALUE"}`, true),
	request("prompt", `"prompts/get","params":{"name":"VALUE","arguments":{}}`, true),
	request("prompt's argument", `"prompts/get","params":{"name":"p","arguments":{"a":"VALUE"}}`, true),
	request("completion", `"completion/complete","params":{"ref":{"type":"ref/prompt","name":"VALUE"},"argument":{"name":"VALUE","value":"VALUE"}}`, false),
	request("other params", `"x/y","params":{"VALUE":"VALUE","z":["VALUE"]}`, false),
	{"request id", `{"jsonrpc":"2.0","id":"VALUE","method":"tools/call","params":{"name":"a_tool"}}`, `{"jsonrpc":"2.0","id":"VALUE","result":{}}`, true},
	{"member of the envelope", `{"jsonrpc":"2.0","id":"ID","method":"tools/call","VALUE":"VALUE","params":{"name":"a_tool"}}`, okAnswer, false},

	request("client_id", `"tools/call","params":{"name":"a_tool","_meta":{"client_id":"VALUE"}}`, true),
	request("client_id that is an object", `"tools/call","params":{"name":"a_tool","_meta":{"client_id":{"x":"VALUE"}}}`, true),
	request("traceparent", `"tools/call","params":{"name":"a_tool","_meta":{"traceparent":"VALUE","tracestate":"VALUE","baggage":"VALUE"}}`, false),
	request("progress token", `"tools/call","params":{"name":"a_tool","_meta":{"progressToken":"VALUE"}}`, false),
	request("client's name in _meta", `"tools/call","params":{"name":"a_tool","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"VALUE","version":"1"}}}`, true),
	request("client's version in _meta", `"tools/call","params":{"name":"a_tool","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c","version":"VALUE"}}}`, true),
	request("protocol version in _meta", `"tools/call","params":{"name":"a_tool","_meta":{"io.modelcontextprotocol/protocolVersion":"VALUE"}}`, true),
	request("request state", `"tools/call","params":{"name":"a_tool","requestState":"VALUE","inputResponses":{"a":{"content":"VALUE"}}}`, false),
	{"client's name", `{"jsonrpc":"2.0","id":"ID","method":"initialize","params":{"clientInfo":{"name":"VALUE","version":"1"}}}`, `{"jsonrpc":"2.0","id":"ID","result":{}}`, true},
	{"client's version", `{"jsonrpc":"2.0","id":"ID","method":"initialize","params":{"clientInfo":{"name":"c","version":"VALUE"}}}`, `{"jsonrpc":"2.0","id":"ID","result":{}}`, true},
	{"server's name", initialize, `{"jsonrpc":"2.0","id":"ID","result":{"serverInfo":{"name":"VALUE","version":"1"}}}`, true},
	{"server's version", initialize, `{"jsonrpc":"2.0","id":"ID","result":{"serverInfo":{"name":"s","version":"VALUE"}}}`, true},
	{"protocol version", initialize, `{"jsonrpc":"2.0","id":"ID","result":{"protocolVersion":"VALUE","instructions":"VALUE"}}`, true},
	call("call that shows who is who", `{}`, false),

	listed("listed tool", `{"name":"VALUE"}`, true),
	listed("listed tool's texts", `{"name":"t1","title":"VALUE","description":"VALUE","inputSchema":{"VALUE":"VALUE"}}`, false),
	listed("listed tool's annotations", `{"name":"t2","annotations":{"title":"VALUE","readOnlyHint":"VALUE","VALUE":true}}`, false),
	listed("listed tool's tags", `{"name":"t3","_meta":{"fastmcp":{"tags":["VALUE"]},"_fastmcp":{"tags":["VALUE"]},"VALUE":1}}`, false),
	call("call after the listing", `{}`, false),

	answered("result", `"result":{"content":[{"type":"text","text":"VALUE"}],"structuredContent":{"VALUE":"VALUE"},"_meta":{"VALUE":"VALUE"}}`, false),
	answered("failed tool's text", `"result":{"isError":true,"content":[{"type":"text","text":"VALUE"}]}`, false),
	answered("error_type", `"result":{"isError":true,"_meta":{"error_type":"VALUE"}}`, true),
	answered("error's message", `"error":{"code":-32000,"message":"VALUE","data":{"VALUE":"VALUE"}}`, false),
	answered("error's code", `"error":{"code":"VALUE","message":"m"}`, false),
	answered("result type", `"result":{"resultType":"VALUE","requestState":"VALUE"}`, false),
	answered("task", `"result":{"task":{"taskId":"VALUE","status":"VALUE"}}`, false),
	answered("member beside the result", `"result":{},"VALUE":"VALUE"`, false),
	answered("notification", `"result":{}}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"VALUE","data":"VALUE"}`, false),
	answered("progress", `"result":{}}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"VALUE","message":"VALUE"}`, false),
	answered("question to the client", `"result":{}}`+"\n"+`{"jsonrpc":"2.0","id":"VALUE","method":"sampling/createMessage","params":{"messages":["VALUE"]}`, false),
	answered("answer to nothing", `"result":{}}`+"\n"+`{"jsonrpc":"2.0","id":"VALUE","result":{"VALUE":"VALUE"}`, false),
	answered("broken line of the server's", `"result":{}}`+"\n"+`{"jsonrpc":"2.0","id":"VALUE", VALUE`, false),
	{"answer of the client's", `{"jsonrpc":"2.0","id":"VALUE","result":{"VALUE":"VALUE"}}`, "", false},
	{"notification of the client's", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"VALUE","message":"VALUE"}}`, "", false},
	{"cancel", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"VALUE","reason":"VALUE"}}`, "", false},
	{"cancelled call", `{"jsonrpc":"2.0","id":"c VALUE","method":"tools/call","params":{"name":"a_tool"}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c VALUE","reason":"VALUE"}}`, `{"jsonrpc":"2.0","id":"c VALUE","error":{"code":1,"message":"VALUE"}}`, true},
	{"call without an answer", `{"jsonrpc":"2.0","id":"n VALUE","method":"tools/call","params":{"name":"a_tool"}}`, "", true},

	{"junk", `VALUE`, "", false},
	{"junk with an object in it", `x {"VALUE":"VALUE"} VALUE`, "", false},
	{"a string", `"VALUE"`, "", false},
	{"line that ends too soon", `{"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"name":"a_tool","arguments":{"pane_id":"VALUE"`, "", false},
	{"string that does not end", `{"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"name":"a_tool","arguments":{"pane_id":"VALUE`, "", false},
	{"brackets that do not match", `{"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"name":"a_tool","arguments":{"pane_id":["VALUE"}}}`, "", false},
	{"member of a batch", `[{"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"name":"VALUE"}},7]`, `[` + okAnswer + `]`, true},
	{"junk in a batch", `["VALUE",{"VALUE":"VALUE"}]`, "", false},
	{"second on its line", `{"jsonrpc":"2.0","method":"notifications/initialized"} {"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"name":"VALUE"}}`, okAnswer, true},
	{"behind a bare CR", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r{\"jsonrpc\":\"2.0\",\"id\":\"ID\",\"method\":\"tools/call\",\"params\":{\"name\":\"VALUE\"}}", okAnswer, true},
	{"over several lines", "{\"jsonrpc\":\"2.0\",\n\"id\":\"ID\",\"method\":\"tools/call\",\n\"params\":{\"name\":\"VALUE\",\"arguments\":\n{\"VALUE\":\"VALUE\"}}}", okAnswer, true},
}

// filler is 80 code points in two bytes each.
const filler = "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé"

// listed is a tools/list whose answer has this definition.
func listed(name, definition string, clear bool) position {
	return position{name, `{"jsonrpc":"2.0","id":"ID","method":"tools/list"}`, `{"jsonrpc":"2.0","id":"ID","result":{"tools":[` + definition + `]}}`, clear}
}
