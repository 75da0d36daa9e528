"""Table of the suites that cover modules without a test file of their own."""

from collections.abc import Mapping

COVERED: Mapping[str, tuple[str, str]] = {
    "tests/backend": (
        "ONNX's own suites run through it",
        """
        .: backend
        """,
    ),
    "tests/cli": (
        "commands are tested by what they print and write, whole",
        """
        cli: argument_types arguments buffer_options cluster_command cluster_options drawing
            driver_options output peers place_command plan_command planned_shapes process
            run_command split_option trace_file tune_option view_command worker
        .: public_calls
        """,
    ),
    "tests/cluster": (
        "clusters of Ray book, run and lose replicas; models are cut for nodes",
        """
        cluster: anchor booked_nodes calls_in_flight cut_table inference_calls keeper
            node_processes nodes preparing_process process_memory ray_state replica served_models
            stage_actor stage_origin stage_program stage_transport worker
        """,
    ),
    "tests/cost": (
        "a cost is tested as a table of a graph",
        """
        cost: operations
        graph: cut tiles
        """,
    ),
    "tests/driver": (
        "a client, a service and a server run against each other",
        """
        driver: permit_names printable threads
        driver.client: assembling blob building burst call_cache client compilation_cache
            device_buffer fallback fence file_pool model_source
            open_interface remote segment varying
        driver.server: heap_trimmer
        driver.types: attachment deadline elements model pools request settings snapshot
            socket_path
        """,
    ),
    "tests/driver/client": (
        "clients run against a server",
        """
        """,
    ),
    "tests/driver/memory": (
        "pools are opened from descriptors, as the driver opens them",
        """
        driver.memory: available inspection isolated_process isolated_worker mappings
        """,
    ),
    "tests/driver/models": (
        "models are prepared and run by the registry",
        """
        driver.models: deferred_routines image_model loaded loader model_cache named
            open_operands operand_models registry running sources subgraph_sequence
        .: forks
        graph: open_graphs
        """,
    ),
    "tests/driver/nnapi": (
        "operations are translated and run as models of operands",
        """
        driver.nnapi: comparison constants emission operation_context operation_rules
            operation_type routine window
        """,
    ),
    "tests/driver/oip": (
        "requests come as bytes; answers are compared with the protocol",
        """
        driver.oip: caller datatypes infer_response inference json_fields limits refusal
            region_calls request_counts
        driver.oip.http: serving
        """,
    ),
    "tests/driver/oip/grpc": (
        "calls of a gRPC client",
        """
        driver.oip.grpc: calls health infer methods serving
        """,
    ),
    "tests/driver/oip/http": (
        "calls of an HTTP client",
        """
        driver.oip.http: calls paths reading transports
        """,
    ),
    "tests/driver/protocol": (
        "every message is encoded and decoded",
        """
        driver.protocol: forms messages replies
        """,
    ),
    "tests/driver/server": (
        "a server runs over sockets",
        """
        driver.server: accepting clock effect_runner features peer
        """,
    ),
    "tests/driver/service": (
        "events come to a service; its effects are compared",
        """
        driver.service: binding buffer_calls buffers burst_calls effects events execution
            execution_calls holds model_checks owned pool_calls scheduler
        """,
    ),
    "tests/driver/types": (
        "checked as parts of messages and of models",
        """
        driver.types: operand_type per_channel status
        """,
    ),
    "tests/engine": (
        "programs are compiled and run",
        """
        engine: interruption
        engine.cache: bounds
        engine.compile: compile_graph compiled_model input_shapes shape_specializer
        engine.program: part_order program schedule
        graph: texts
        engine.arenas: pools
        """,
    ),
    "tests/engine/arenas": (
        "arenas of pools and groups",
        """
        engine.arenas: admission idle_trimmer
        """,
    ),
    "tests/engine/kernels": (
        "kernels are compared with onnx.reference, node by node",
        """
        engine.kernels: failure kernel_context logistic matmul numbers objects optional
            recurrent_cell reference_texts strings to_proto window
        engine.kernels.gradient: activation clip convolution dropout indexing layer loss
            normalization product recurrent update
        """,
    ),
    "tests/engine/lower": (
        "graphs are lowered; steps and results are compared",
        """
        engine.lower.step_passes: moved
        engine.lower.steps: half_weights
        """,
    ),
    "tests/engine/lower/native": (
        "nodes are lowered to native kernels alone and run",
        """
        engine.lower.native: depthwise part quantize recurrent_gradient reduction
        """,
    ),
    "tests/engine/lower/onednn": (
        "nodes are lowered to primitives and run",
        """
        engine.lower.onednn: choose convolution convolution_gradient elementwise
            elementwise_gradient gradient integer_convolution movement normalization
            normalization_gradient parameters pooling post_ops quantized quantized_addition
            quantized_convolution quantized_product quantized_work scaled transposed
        """,
    ),
    "tests/engine/lower/passes": (
        "results with and without a pass",
        """
        engine.lower.passes: blocks dequantized expand_quantized fuse_quantize sink_dequantize
            widened
        """,
    ),
    "tests/engine/lower/steps": (
        "steps of lowered graphs",
        """
        engine.lower.steps: cost descriptions emit fused_nodes layouts options
            reach records strides views
        """,
    ),
    "tests/engine/plan": (
        "plans are drawn and written",
        """
        engine.plan: drawing
        """,
    ),
    "tests/engine/run": (
        "programs run in their arenas",
        """
        engine.run: arena limits
        view: timing trace_events
        view: timing_table
        """,
    ),
    "tests/engine/stored": (
        "models are stored, damaged and read",
        """
        engine.stored: bounds compatibility fields model read_program recipes reconstruct save
            write_program
        """,
    ),
    "tests/engine/template": (
        "templates are specialized to lengths",
        """
        engine.template: retype values
        """,
    ),
    "tests/engine/weights": (
        "weights are packed",
        """
        engine.weights: allocation
        """,
    ),
    "tests/frontend": (
        "models are read from bytes",
        """
        frontend: body finish same_names writer
        """,
    ),
    "tests/frontend/jax": (
        "traced functions are compared with jax",
        """
        frontend.jax: call convolution indexing movement pointwise products reduction
            slices table tensor translate windows
        """,
    ),
    "tests/frontend/onnx": (
        "models are read from bytes",
        """
        frontend.onnx: attributes constant_node element evaluate in_order schema scope
            text
        graph: refusal
        """,
    ),
    "tests/frontend/onnx/contrib": (
        "operators are compared with ONNX Runtime",
        """
        frontend.onnx.contrib: activations normalization pattern translation
        """,
    ),
    "tests/frontend/torch": (
        "exported programs are compared with torch",
        """
        .: torch_compile
        frontend.torch: arithmetic call computed decompose gradient indexing movement
            normalization pointwise products reduction refusal table tensor translate windows
        frontend.torch: joint
        frontend.torch: traced
        training: open_steps
        """,
    ),
    "tests/graph": (
        "graphs are made, typed and cut",
        """
        graph: attention_shapes layer mapped_file new_names optimizer recurrent_shapes symbolic
        graph.operands: indexed operands parameters quantized sequences windows
        """,
    ),
    "tests/graph/backward": (
        "gradients are compared with differences and with torch",
        """
        engine.kernels: body
        graph.backward: activation batch_statistics convolution elementwise gradient_context
            loop_gradient loop_iterations loss movement normalization product reach reduction
            resize scatter tape update
        """,
    ),
    "tests/graph/operators": (
        "every row runs its sample on every tier, against onnx.reference",
        """
        graph.operators: activations arithmetic comparisons control fused indexing movement
            normalizations products quantized reductions row signatures sources strings training
            windows
        graph.operators.shapes: indexing shape_context stacks windows
        """,
    ),
    "tests/loading": (
        "models are loaded from files",
        """
        loading: entry model_specializer opening restoring unprepared
        """,
    ),
    "tests/planner": (
        "plans are verified and compared with bounds",
        """
        planner: constraint_checks planning recompute rematerialized
            verify_parallel
        """,
    ),
    "tests/planner/constrained": (
        "problems with constraints are placed",
        """
        planner.constrained: items
        """,
    ),
    "tests/planner/format": (
        "files of buffers are read and written",
        """
        planner.format: csv_constraints flatbuffer json_fields model_report plan_constraints
            tflite_writer
        """,
    ),
    "tests/planner/parallel": (
        "orders of parallel steps are planned and verified",
        """
        planner.parallel: added_edges dependencies longest_path
            touched
        """,
    ),
    "tests/planner/placements": (
        "each placement gives verified plans",
        """
        planner.placements: shared_objects
        """,
    ),
    "tests/planner/scheme": (
        "schemes of replay",
        """
        planner.scheme: blocks caching_allocator
        """,
    ),
    "tests/plug": (
        "frameworks allocate through them",
        """
        plug: cupy pools torch
        """,
    ),
    "tests/resource": (
        "resources allocate, refuse and free",
        """
        resource: counted division pool private_folder scope slot_file topology
        """,
    ),
    "tests/scenarios/driver": (
        "models are opened by a running driver",
        """
        """,
    ),
    "tests/training": (
        "steps train, and are compared with torch",
        """
        graph: loop_trips
        training: block bodies joint planned program release_points step_graph trainer
            written_out
        """,
    ),
    "tests/engine/lower/passes/test_attention_bounds.py": (
        "masks of the usual exporters are read as bounds",
        """
        engine.lower.passes: attention_masks index_algebra index_cases index_tables
        """,
    ),
    "tests/view": (
        "pages and pictures are drawn",
        """
        view: palette replay_page scale
        """,
    ),
    "tests/model": (
        "loaded models run on arrays",
        """
        model: feeds whole_caches
        """,
    ),
    "tests/engine/cache": (
        "programs of a cache",
        """
        engine.cache: statistics
        """,
    ),
    "tests/test_public_api.py": (
        "every public name is imported and its documentation read",
        """
        .: gradients types
        """,
    ),
}
"""Reasons why a suite covers modules, by suite: a folder or a file of tests; and the modules by
their package."""
