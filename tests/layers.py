"""Layers of modules, and the imports allowed between them: a table, read as documentation.

Layers, top to bottom; an import goes strictly down, and names side by side never meet:

    tightship_start, a package of its own, above cli, above cluster
    driver | plug | backend | torch_compile | notebook
    embedding, above types, which are names for annotations
    budget | lengths | primitive
    memory | loading.entry | cost, above training | loading: shared, kept, apart, above unprepared
    loading.preparing | loading.first_shapes | loading.session_plan | loading.stored_session_plan
    loading.session_programs | loading.planned_session, above loading.opening, above
    loading.decoder_shapes | loading.settings
    loading: tuning | restoring | activations | prepared_once | model_specializer | input_shapes
    model | loading.budget | loading.reading_process
    model.bound_run | model.session_opener, above model.growing_runs, above
    model.sessions | model.whole_caches, above model.session
    model.session_file | model.session_options, above model.session_pool | model.session_tokens |
    model.prefixes, above model.step_programs, above model.keeping, above model.step_arrays
    model.feeds | model.step_sizes, above model.row_blocks, above engine, above text
    difference, above view | trace.workload, above trace.replay
    frontend | planner | resource | gradients | sample, above graph, above prepared_cache
    late_names, for packages, above deprecated, for all who have renamed something
    available | quantity | forks | atomic_file | sha256
    trace.rmm_log | trace.torch_snapshot | safetensors, above trace.events
    public_calls and brief, for all above them | wrong_arguments, above errors | _core

An import within a function counts too; `python -m tests.imports` prints what each room imports.
"""

from collections.abc import Mapping

LOWEST = (
    "errors", "available", "brief", "wrong_arguments", "forks", "atomic_file", "trace",
    "planner.names", "planner.constrained", "engine.interruption", "driver.printable",
    "driver.threads", "driver.permit_names",
)  # fmt: skip
"""Modules that import nothing of the package."""

ALLOWED: Mapping[str, str] = {  # the longest prefix of a module's name decides
    **dict.fromkeys(LOWEST, ""),
    "public_calls": "errors wrong_arguments",
    "quantity": "errors",
    "safetensors": "errors",
    "sha256": "_core",
    "late_names": "deprecated",
    "deprecated": "errors",
    "trace.events": "errors",
    "trace.rmm_log": "errors trace.events",
    "trace.torch_snapshot": "errors trace.events",
    "trace.replay": "_core public_calls trace.events resource",
    "trace.workload": "errors quantity trace.events trace.replay resource",
    "graph": "deprecated errors late_names graph",
    "resource": "_core deprecated errors forks late_names quantity resource",
    "frontend": "_core deprecated errors graph late_names sha256 frontend",
    "planner": "late_names planner",
    "text": "_core errors frontend.gguf.vocabulary public_calls text",
    "embedding": (
        "_core errors frontend.gguf.pooling frontend.gguf_letters late_names loading model"
        " public_calls quantity text embedding"
    ),
    "planner.constraints": "errors quantity",
    "planner.constraint_checks": "errors planner.constraints",
    "planner.problem": "deprecated errors quantity planner.constraint_checks planner.constraints",
    "planner.schedule": "errors",
    "planner.plan": "planner.problem",
    "planner.verify": (  # nothing that a solver uses
        "_core.first_overlap errors planner.problem planner.plan planner.verify_constraints"
    ),
    "planner.verify_constraints": "_core.first_overlap errors planner.constraints planner.problem",
    "planner.bound": "_core planner.constrained.bound planner.problem",
    "planner.constrained.items": "planner.constraints planner.problem",
    "planner.constrained.bound": "_core planner.constraints planner.constrained planner.problem",
    "planner.constrained.bank_cost": "planner.constraints planner.constrained.items",
    "planner.constrained.orders": (
        "_core errors planner.constraints planner.constrained.items planner.placements planner.plan"
        " planner.problem planner.verify"
    ),
    "planner.constrained.search": (
        "_core planner.conflict planner.narrowing planner.placements planner.plan"
    ),
    "planner.constrained.plan": (
        "_core planner.bound planner.constraints planner.constrained planner.large planner.plan"
        " planner.problem"
    ),
    "planner.placements": "_core planner.problem planner.placements",
    "planner.placements.exact_items": (
        "_core planner.constraints planner.constrained.items planner.placements planner.problem"
    ),
    "planner.part": "planner.constraints planner.problem",
    "planner.narrowing": "_core",
    "planner.large": "planner.repair planner.placements planner.problem",
    "planner.repair": "planner.part planner.placements planner.problem",
    "planner.conflict": "_core planner.part planner.placements planner.plan planner.problem",
    "planner.improve": "_core planner.narrowing planner.placements planner.problem",
    "planner.portfolio": "_core planner",
    "planner.stored_order": (
        "errors planner.bound planner.placements planner.plan planner.portfolio planner.problem"
        " planner.verify"
    ),
    "planner.penalties": "errors planner.problem",
    "planner.verify_reuse": (  # nothing that a solver uses
        "planner.penalties planner.plan planner.problem planner.verify"
    ),
    "planner.reuse": "_core errors planner.penalties planner.plan planner.verify_reuse",
    "planner.parallel": (
        "_core errors planner.alias_group planner.bound planner.liveness planner.schedule_plan"
        " planner.parallel planner.placements planner.plan planner.planning planner.stored_order"
        " planner.portfolio planner.problem planner.schedule planner.verify planner.verify_parallel"
    ),
    "planner.reorder": (
        "_core planner.alias_group planner.parallel planner.planning planner.problem"
        " planner.schedule planner.schedule_plan"
    ),
    "planner.recompute": (
        "_core errors planner.alias_group planner.parallel planner.problem planner.schedule"
        " planner.rematerialized planner.replayed"
    ),
    "planner.recompute_bound": ("_core planner.parallel planner.recompute planner.schedule"),
    "planner.checkpoints": "_core errors planner",
    "planner.squeeze": "planner",
    "planner.verify_parallel": "errors planner.schedule planner.schedule_plan",
    "planner.alias_group": "errors planner.schedule",
    "planner.alias_choice": "planner.alias_group planner.problem planner.schedule",
    "planner.schedule_plan": "planner.plan planner.problem planner.schedule",
    "planner.liveness": (
        "planner.alias_choice planner.alias_group planner.problem planner.schedule"
        " planner.schedule_plan"
    ),
    "planner.format": (
        "_core atomic_file errors late_names trace.events planner.constraints planner.format"
        " planner.names planner.plan planner.penalties planner.problem planner.verify"
    ),
    "sample": "errors sample",
    "view": "quantity view",
    "difference": "errors graph quantity view difference",
    "primitive": "_core engine errors loading model resource primitive",
    "lengths": "errors frontend graph quantity engine loading",
    "budget": "_core atomic_file engine.library errors frontend loading quantity view budget",
    "budget.training": "errors frontend graph loading.entry training view",
    "engine.activations": "errors",
    "engine.kernels": "_core errors graph engine.kernels engine.interruption",
    "engine.primitive_cache": "_core errors quantity",
    "engine.library": "_core errors engine.primitive_cache",
    "engine.program": "_core engine.kernels graph planner engine.program",
    "engine.lower": "late_names engine.lower",
    "engine.lower.passes": "engine.kernels graph engine.lower.passes",
    "engine.lower.pipeline": "errors graph engine.activations engine.lower.passes",
    "engine.lower.steps": (
        "_core errors engine.kernels graph planner.schedule engine.program engine.lower.passes"
        " engine.lower.steps"
    ),
    "engine.lower.native": (
        "_core engine.kernels graph engine.program engine.lower.passes"
        " engine.lower.steps engine.lower.native"
    ),
    "engine.lower.onednn": (
        "_core engine.kernels graph planner.schedule engine.program"
        " engine.lower.passes engine.lower.steps engine.lower.onednn"
    ),
    "engine.lower.onednn.sized_convolution": (  # makes primitives while a model runs
        "_core graph engine.interruption engine.kernels engine.library engine.lower"
    ),
    "engine.lower.step_passes": (
        "_core graph planner engine.program engine.lower.steps engine.lower.step_passes"
    ),
    "engine.lower.replay": "graph engine.program engine.lower.steps",
    "engine.lower.selection": (
        "_core graph planner engine.kernels engine.library engine.program engine.lower"
    ),
    "engine.weights": "_core errors graph engine.program engine.lower.passes engine.weights",
    "engine.plan": "errors graph planner engine.library engine.program engine.weights engine.plan",
    "engine.plan.memory_plan": "deprecated planner view.picture engine.program engine.plan",
    "engine.plan.drawing": "atomic_file errors planner view engine.plan",  # the way to a picture
    "engine.plan.concurrency_report": "planner quantity view",
    "engine.run": (
        "_core errors planner engine.interruption engine.kernels engine.library engine.plan"
        " engine.program engine.weights engine.run"
    ),
    "engine.run.profile": "atomic_file view engine.plan engine.program engine.run",  # draws as well
    "engine.arenas": (
        "_core errors forks resource engine.library engine.run engine.weights engine.arenas"
    ),
    "engine.compile": (
        "errors graph engine.activations engine.library engine.lower engine.plan engine.program"
        " engine.weights engine.compile"
    ),
    "engine.template": (
        "errors graph engine.compile engine.kernels engine.lower engine.plan engine.program"
        " engine.template"
    ),
    "engine.state": "errors graph engine.template engine.state",
    "engine.state.digest": "graph sha256",
    "engine.state.cache_rows": "_core errors graph engine.state",
    "engine.state.shared_rows": "_core errors engine.state",
    "engine.state.page_pool": "errors quantity engine.state",
    "engine.cache": (
        "_core errors graph resource engine.arenas engine.compile engine.library engine.plan"
        " engine.primitive_cache engine.program engine.run engine.weights engine.cache"
    ),
    "engine.stored": (
        "_core atomic_file errors graph planner engine.activations engine.compile engine.kernels"
        " engine.library engine.plan engine.program engine.run engine.weights engine.stored"
    ),
    "prepared_cache": "errors quantity sha256 prepared_cache",
    "engine.stored.steps": "graph engine.compile engine.state engine.stored engine.weights",
    "engine.stored.shapes": (
        "errors graph engine.compile engine.plan engine.program engine.state engine.stored"
    ),
    "engine.stored.sessions": "errors engine.state engine.stored",
    "model": "model",
    "model.feeds": "errors graph engine model.row_blocks",
    "model.bound_run": "_core errors engine model.feeds",
    "model.step_sizes": "_core graph engine",
    "model.step_arrays": "_core engine model.feeds",
    "model.keeping": "engine model.step_arrays",
    "model.step_programs": (
        "_core errors graph engine model.keeping model.feeds model.step_arrays model.step_sizes"
    ),
    "model.session_file": "atomic_file errors engine safetensors",
    "model.session_text": "_core errors text",
    "model.session_use": "errors model.session",
    "model.joint_steps": "errors engine model.feeds model.session model.step_arrays"
    " model.step_programs",
    "model.spilled_rows": "errors quantity safetensors engine model.session model.session_tokens",
    "model.session_pool": "errors public_calls quantity engine model.spilled_rows",
    "model.session_options": "errors engine.state model.feeds model.session_pool",
    "model.session_tokens": "errors engine model.feeds model.spilled_rows",
    "model.prefixes": ("_core errors resource sha256 engine model.feeds model.step_programs"),
    "model.session": (
        "_core errors public_calls engine model.feeds model.prefixes model.session_file"
        " model.session_pool model.session_text model.session_tokens model.session_use"
        " model.spilled_rows model.step_arrays model.step_programs"
    ),
    "model.sessions": (
        "errors engine graph quantity model.feeds model.keeping model.prefixes model.session"
        " model.session_options model.session_pool model.step_programs text.generation"
    ),
    "model.whole_caches": "engine model.row_blocks model.step_arrays model.step_programs",
    "model.growing_runs": (
        "errors engine model.feeds model.session_options model.sessions model.step_programs"
        " model.row_blocks model.whole_caches"
    ),
    "model.session_opener": (
        "errors graph public_calls engine model.feeds model.growing_runs model.session"
        " model.session_options model.session_pool model.sessions frontend.gguf_letters text"
    ),
    "model.loaded": "_core errors graph engine model.feeds model.bound_run model.session_opener",
    "model.late_model": "_core errors graph engine model.loaded",
    "memory": "errors engine model",
    "loading": "loading.entry",
    "loading.budget": "errors quantity engine.plan.memory_plan",
    "loading.tuning": "atomic_file errors graph engine model",
    "loading.restoring": "errors engine model loading.budget",
    "loading.input_shapes": "errors graph engine",
    "loading.activations": "errors engine frontend.gguf_letters",
    "loading.decoder_shapes": "errors engine.state frontend.onnx graph loading.input_shapes",
    "loading.first_shapes": "graph engine loading.input_shapes loading.opening",
    "loading.model_specializer": "_core engine errors graph quantity",
    "loading.prepared_once": "errors engine frontend prepared_cache sha256",
    "loading.step_files": "errors engine loading.model_specializer loading.prepared_once"
    " loading.session_programs prepared_cache",
    "loading.opening": (
        "errors graph frontend engine loading.budget loading.decoder_shapes loading.input_shapes"
        " loading.tuning"
    ),
    "loading.preparing": "deprecated errors frontend graph engine loading.activations"
    " loading.opening loading.session_programs loading.settings",
    "loading.settings": "errors quantity engine",
    "loading.session_programs": (
        "errors engine frontend.onnx loading.input_shapes loading.opening model.session_options"
    ),
    "loading.handing_over": "available errors engine frontend.gguf_letters frontend.onnx graph"
    " loading.opening",
    "loading.apart": "_core available errors engine frontend model quantity loading.handing_over"
    " loading.reading_process loading.unprepared",
    "loading.planned_session": "errors engine.plan loading.input_shapes",
    "loading.stored_session_plan": (
        "errors engine graph loading.input_shapes loading.planned_session loading.restoring"
    ),
    "loading.unprepared": "errors graph frontend engine model loading.budget loading.handing_over"
    " loading.opening",
    "loading.session_plan": (
        "errors engine frontend.onnx model.session_options model.step_sizes loading.input_shapes"
        " loading.opening loading.planned_session"
    ),
    "loading.shared": (
        "errors engine model prepared_cache loading.model_specializer loading.opening"
        " frontend loading.input_shapes loading.preparing loading.prepared_once"
        " loading.reading_process loading.restoring loading.step_files loading.unprepared"
    ),
    "loading.kept": (
        "errors engine frontend graph model prepared_cache sha256 loading.budget loading.opening"
        " loading.prepared_once loading.reading_process loading.unprepared loading.kept"
    ),
    "loading.entry": (
        "deprecated errors quantity graph resource engine model frontend training loading.kept"
        " loading.activations loading.apart loading.restoring loading.settings loading.shared"
        " loading.unprepared"
    ),
    "training": (
        "_core atomic_file deprecated errors quantity brief graph engine model.feeds frontend"
        " loading.opening safetensors training"
    ),
    "cost": "errors quantity graph planner view cost",
    "plug": "_core errors planner plug resource",
    "backend": "errors loading model",
    "torch_compile": "errors loading frontend.torch graph training",
    "driver.types": "errors resource.private_folder driver.types",
    "driver.protocol": "errors driver.types driver.protocol",
    "driver.memory": "available errors graph driver.types driver.memory",
    "driver.nnapi": "errors graph driver.types driver.nnapi",
    "driver.service": "errors driver.protocol driver.types driver.service",
    "driver.models": (
        "_core errors frontend.onnx graph loading model engine.arenas.arena_group driver.memory"
        " driver.nnapi driver.printable driver.protocol driver.service driver.types driver.models"
    ),
    "driver.client": (
        "_core deprecated errors frontend.onnx prepared_cache quantity safetensors driver.memory"
        " driver.printable driver.protocol driver.types driver.client"
    ),
    "driver.client.fallback": "deprecated errors loading model driver",
    "driver.server": (
        "_core errors model.bound_run resource.private_folder resource.resident driver.memory"
        " driver.models driver.printable driver.protocol driver.service driver.threads"
        " driver.permit_names driver.types driver.server"
    ),
    "driver.oip": (
        "_core __version__ available engine.arenas.arena_group engine.stored.container errors"
        " graph model loading resource.resident driver.memory driver.models driver.printable"
        " driver.service driver.permit_names driver.types driver.oip"
    ),
    "driver.oip.http": "errors driver.oip driver.server.accepting driver.threads driver.oip.http",
    "driver.oip.grpc": (
        "errors graph driver.memory.timer_thread driver.oip driver.server.accepting"
        " driver.threads driver.oip.grpc"
    ),
    "driver.texts": (
        "_core embedding errors model text driver.oip.refusal driver.oip.regions"
        " driver.oip.repository driver.oip.request_counts driver.oip.served_model driver.printable"
        " driver.texts"
    ),
    "driver.openai": "_core embedding errors text driver.oip driver.texts driver.openai",
    "driver.process": "_core errors driver",
    "driver": "late_names driver.client driver.protocol driver.types",
    "cluster": (
        "errors graph late_names public_calls quantity engine loading planner prepared_cache"
        " resource.resident cluster"
    ),
    "cluster.arriving_body": "driver.oip cluster",
    "cluster.json_arrays": "driver.oip graph",
    "cluster.inference_calls": "_core driver.oip cluster",
    "cluster.served_models": "driver.oip engine.library errors public_calls cluster",
    "cli": (
        "atomic_file deprecated errors quantity graph planner view engine model loading cost"
        " __version__ budget lengths cli difference driver embedding prepared_cache resource text"
        " sample trace cluster"
    ),
    "cli.main": "_core errors cli view.text",  # the end of the process
    "cli.serve_command": "_core cli driver errors prepared_cache",
    "serve": "_core driver errors quantity",
    "notebook": "errors",
    "types": (  # names for annotations
        "_core engine graph.optimizer late_names model.bound_run planner.parallel training view"
    ),
    "gradients": "graph.backward",
    "": (  # `tightship` itself
        "_core errors graph late_names planner engine.arenas.arena_group sample serve text"
        " engine.plan.memory_plan engine.primitive_cache model memory loading training resource"
        " types backend budget cluster lengths difference driver embedding frontend gradients plug"
        " primitive notebook"
    ),
}

FOREIGN: Mapping[str, str] = {  # who may import what is not ours, nor Python's
    "numpy": (
        "cluster graph planner frontend engine model training embedding loading.kept"
        " loading.tuning torch_compile plug.hints resource.slot_file driver.nnapi trace backend"
        " cli driver.memory driver.models driver.types.elements driver.client driver.oip primitive"
        " safetensors sample text"
    ),
    "ml_dtypes": "graph.layout engine.kernels",
    "onnx": (
        "frontend.gguf frontend.onnx engine.kernels.reference engine.kernels.to_proto"
        " training.save backend sample"
    ),
    "onnxruntime": "cli.worker",  # measured beside us, in a process of its own
    "jax": "frontend.jax",
    "sympy": "frontend.torch",  # torch's lengths are expressions of it
    "torch": "plug.torch frontend.torch torch_compile",
    "cupy": "plug.cupy",
    "tqdm": "notebook",
    "ray": "cluster",
    "starlette": "cluster.served_models",  # what Ray Serve answers with
    "tightship_start": "cli.__main__ cli.main",  # the process's first steps
    "httptools": "driver.oip.http.reading",
    "uvicorn": "driver.oip.http",
    "opentelemetry": "driver.oip.tracing",
    "grpc": "driver.oip.grpc",
    "google": "frontend.onnx driver.oip.schema driver.oip.config_text driver.oip.grpc.calls",
}
